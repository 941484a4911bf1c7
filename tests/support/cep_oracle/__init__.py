"""Cases of patterns and streams, and what flink-cep gives for them."""
