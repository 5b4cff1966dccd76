"""Audio leaving the engine: to the loudspeaker (`player`, `segment`, `device`, `ring`) or to a client
(`reply`, `encode`, `resample`).
"""
