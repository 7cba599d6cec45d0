"""The quality of learning on labelled conversations of our own, for any extractor."""
