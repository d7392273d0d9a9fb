"""Export of fitted trees to scikit-learn and ONNX."""
