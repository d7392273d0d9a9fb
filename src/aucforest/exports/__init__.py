"""Fitted trees as models of scikit-learn, and as ONNX."""
