"""Model providers' wire formats and the neutral vocabulary between them; pure values and functions."""
