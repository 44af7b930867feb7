"""How the tables svm, lr, rf and xgb of `scaml.bench` are made: data sets, training, building."""
