"""Models and tokenizers of other projects in, ours out to them.

Nothing else in minigpt knows of this folder. Files are read without running anything in them:
safetensors and JSON in, never a pickle.

other projects' files <-> run directory
"""
