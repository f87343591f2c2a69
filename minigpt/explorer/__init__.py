"""One HTML file with a trained model in it, to look inside without a network or an install.

`contents` gathers what the page is told, `bundle` puts it and the files of `page/` into one.
The page itself is plain JavaScript: `page/model.js` is the model's forward pass.
"""
