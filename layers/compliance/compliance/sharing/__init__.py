"""Send packs of evidence by mail and by links that expire."""
