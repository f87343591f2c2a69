"""What the attention heads of a trained model look at, seen from outside.

`capture` takes the attention weights, `scores` asks questions of them, `measure` does so over
many texts, `findings` puts the answers into words; `table`, `terminal` and `plots` show them.

model, texts -> weights (L, B, H, T, T) -> scores (L, H) -> table, pictures
"""
