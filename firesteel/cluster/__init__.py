"""The JobManager process: Dispatcher, ResourceManager, REST server and high availability."""
