"""Record mode: the gate, the recorder with the real key, and the files that come of a run."""
