"""The configuration options of a cluster."""

from __future__ import annotations

from firesteel.common.time import Duration
from firesteel.config.memory_size import MemorySize
from firesteel.config.option import ConfigOptions

__all__ = [
    "CLUSTER_DIRECTORY",
    "CLUSTER_ID",
    "FLAMEGRAPH_DELAY",
    "FLAMEGRAPH_ENABLED",
    "FLAMEGRAPH_REFRESH",
    "FLAMEGRAPH_SAMPLES",
    "HA_LEASE_DURATION",
    "HA_MODE",
    "HA_STORAGE_DIR",
    "HA_ZOOKEEPER_QUORUM",
    "HA_ZOOKEEPER_ROOT",
    "HA_ZOOKEEPER_SESSION_TIMEOUT",
    "JOB_STORE_CAPACITY",
    "JOB_STORE_EXPIRATION",
    "METRICS_INTERVAL",
    "PROGRAM_TIMEOUT",
    "PROMETHEUS_ENABLED",
    "QUERYABLE_STATE_ENABLED",
    "REST_ADDRESS",
    "REST_AUTHENTICATE_READS",
    "REST_BIND_ADDRESS",
    "REST_BIND_PORT",
    "REST_MAX_CONTENT_LENGTH",
    "REST_PATH",
    "REST_PORT",
    "REST_TOKEN_FILE",
    "SLOT_MEMORY",
    "SSL_INTERNAL_CA",
    "SSL_INTERNAL_CERTIFICATE",
    "SSL_INTERNAL_ENABLED",
    "SSL_INTERNAL_KEY",
    "SSL_REST_AUTHENTICATION",
    "SSL_REST_CA",
    "SSL_REST_CERTIFICATE",
    "SSL_REST_ENABLED",
    "SSL_REST_KEY",
    "TASK_SLOTS",
    "WEB_ALLOW_ORIGIN",
    "WEB_CANCEL_ENABLED",
    "WEB_REFRESH_INTERVAL",
    "WEB_SUBMIT_ENABLED",
    "WEB_UPLOAD_DIRECTORY",
]

_key = ConfigOptions.key

REST_ADDRESS = (
    _key("rest.address").string_type().default_value("localhost").with_description("Where clients find the JobManager.")
)
REST_PORT = (
    _key("rest.port")
    .int_type()
    .default_value(8081)
    .with_description("The port clients connect to, which the JobManager listens on unless rest.bind-port is set.")
)
REST_BIND_ADDRESS = (
    _key("rest.bind-address")
    .string_type()
    .default_value("localhost")
    .with_description(
        "The address the JobManager listens on. On any other than this machine's own, whatever changes "
        "something needs a token or a client certificate."
    )
)
REST_BIND_PORT = (
    _key("rest.bind-port")
    .string_type()
    .no_default_value()
    .with_description("The port, or ports such as 8081-8090, of which the first free one is taken. 0 for any.")
)
REST_PATH = (
    _key("rest.path")
    .string_type()
    .no_default_value()
    .with_description("What comes before every path, for a JobManager behind a proxy.")
)
REST_MAX_CONTENT_LENGTH = (
    _key("rest.server.max-content-length")
    .memory_type()
    .default_value(MemorySize.parse("100 mb"))
    .with_description("The largest request body that is read.")
)
REST_TOKEN_FILE = (
    _key("rest.token-file")
    .string_type()
    .no_default_value()
    .with_description(
        "A file, readable by its owner alone, with the token that requests must carry (Authorization: Bearer "
        "…). By default each cluster makes up its own, in its directory."
    )
)
REST_AUTHENTICATE_READS = (
    _key("rest.authentication.reads")
    .boolean_type()
    .no_default_value()
    .with_description(
        "Whether requests that only read need the token or a client certificate too. By default all need it but those "
        "from this machine and from the user that the JobManager runs as."
    )
)
SSL_REST_ENABLED = (
    _key("security.ssl.rest.enabled")
    .boolean_type()
    .default_value(False)
    .with_description("Whether the REST port speaks TLS.")
)
SSL_REST_AUTHENTICATION = (
    _key("security.ssl.rest.authentication-enabled")
    .boolean_type()
    .default_value(False)
    .with_description("Whether clients must have a certificate of security.ssl.rest.ca; it counts as the token does.")
)
SSL_REST_CERTIFICATE = (
    _key("security.ssl.rest.certificate")
    .string_type()
    .no_default_value()
    .with_description("The certificate of this side, a PEM file. Flink has key stores instead.")
)
SSL_REST_KEY = (
    _key("security.ssl.rest.key")
    .string_type()
    .no_default_value()
    .with_description("The private key of the certificate, a PEM file.")
)
SSL_REST_CA = (
    _key("security.ssl.rest.ca")
    .string_type()
    .no_default_value()
    .with_description("The certificates that the other side's is checked against, a PEM file.")
)
SSL_INTERNAL_ENABLED = (
    _key("security.ssl.internal.enabled")
    .boolean_type()
    .default_value(False)
    .with_description(
        "Whether connections between slots, and between slots and the JobMaster, are encrypted. They are "
        "authenticated in any case."
    )
)
SSL_INTERNAL_CERTIFICATE = (
    _key("security.ssl.internal.certificate")
    .string_type()
    .no_default_value()
    .with_description(
        "The certificate that slots and the JobMaster show each other, a PEM file on every host. Flink has key "
        "stores instead."
    )
)
SSL_INTERNAL_KEY = (
    _key("security.ssl.internal.key")
    .string_type()
    .no_default_value()
    .with_description("The private key of security.ssl.internal.certificate, a PEM file on every host.")
)
SSL_INTERNAL_CA = (
    _key("security.ssl.internal.ca")
    .string_type()
    .no_default_value()
    .with_description(
        "The authorities whose certificates slots and the JobMaster trust, a PEM file on every host. Host names do "
        "not matter: use an authority of your own."
    )
)
WEB_REFRESH_INTERVAL = (
    _key("web.refresh-interval")
    .duration_type()
    .default_value(Duration.of_millis(3000))
    .with_description("How often the web pages ask for news.")
)
WEB_ALLOW_ORIGIN = (
    _key("web.access-control-allow-origin")
    .string_type()
    .no_default_value()
    .with_description("The site whose pages may read answers, or * for all (Access-Control-Allow-Origin). In Flink: *.")
)
WEB_SUBMIT_ENABLED = (
    _key("web.submit.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether programs can be uploaded and run from the web pages.")
)
WEB_CANCEL_ENABLED = (
    _key("web.cancel.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether jobs can be cancelled from the web pages.")
)
WEB_UPLOAD_DIRECTORY = (
    _key("web.upload.dir")
    .string_type()
    .no_default_value()
    .with_description("Where uploaded programs are kept; by default in the cluster's directory.")
)
PROGRAM_TIMEOUT = (
    _key("web.program.timeout")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("How long an uploaded program may take to submit its job.")
)
FLAMEGRAPH_ENABLED = (
    _key("rest.flamegraph.enabled")
    .boolean_type()
    .default_value(True)
    .with_description(
        "Whether the stacks of a vertex can be sampled. Off in Flink by default; here it costs nothing while "
        "nobody looks."
    )
)
FLAMEGRAPH_SAMPLES = (
    _key("rest.flamegraph.num-samples")
    .int_type()
    .default_value(100)
    .with_description("How many samples make a flame graph.")
)
FLAMEGRAPH_DELAY = (
    _key("rest.flamegraph.delay-between-samples")
    .duration_type()
    .default_value(Duration.of_millis(50))
    .with_description("The time between two samples.")
)
FLAMEGRAPH_REFRESH = (
    _key("rest.flamegraph.refresh-interval")
    .duration_type()
    .default_value(Duration.of_minutes(1))
    .with_description("How old a flame graph may get before new samples are taken.")
)
QUERYABLE_STATE_ENABLED = (
    _key("queryable-state.enable")
    .boolean_type()
    .default_value(True)
    .with_description("Whether the state of running jobs can be read by key over REST.")
)
JOB_STORE_EXPIRATION = (
    _key("jobstore.expiration-time")
    .int_type()
    .default_value(3600)
    .with_description("How many seconds a job that has ended is shown.")
)
JOB_STORE_CAPACITY = (
    _key("jobstore.max-capacity")
    .int_type()
    .default_value(1000)
    .with_description("How many jobs that have ended are shown at most.")
)
TASK_SLOTS = (
    _key("taskmanager.numberOfTaskSlots")
    .int_type()
    .no_default_value()
    .with_description("How many slots an embedded Spark has; by default as many as there are cores, at least 4.")
)
SLOT_MEMORY = (
    _key("taskmanager.memory.slot.size")
    .memory_type()
    .no_default_value()
    .with_description(
        "How much memory a slot's process may have. One that takes more fails the job, and says so, instead "
        "of being killed with no word. No limit by default."
    )
)
CLUSTER_ID = (
    _key("high-availability.cluster-id")
    .string_type()
    .default_value("default")
    .with_description("Tells clusters apart that share a directory or a ZooKeeper.")
)
HA_MODE = (
    _key("high-availability.type")
    .choice_type("filesystem", "zookeeper")
    .default_value("filesystem")
    .with_description(
        "How JobManagers find out which of them leads: by leases in the storage directory, which must be one "
        "that all share and can rename in, or with ZooKeeper."
    )
)
HA_STORAGE_DIR = (
    _key("high-availability.storageDir")
    .string_type()
    .no_default_value()
    .with_description(
        "Where jobs are kept, so that they outlive the JobManager; by default in the cluster's directory. "
        "Checkpoints go there too where execution.checkpointing.dir is not set."
    )
)
HA_LEASE_DURATION = (
    _key("high-availability.filesystem.lease-duration")
    .duration_type()
    .default_value(Duration.of_seconds(5))
    .with_description("How long a leader may be silent until another takes over.")
)
HA_ZOOKEEPER_QUORUM = (
    _key("high-availability.zookeeper.quorum")
    .string_type()
    .no_default_value()
    .with_description("The ZooKeeper servers: host:port,host:port.")
)
HA_ZOOKEEPER_ROOT = (
    _key("high-availability.zookeeper.path.root")
    .string_type()
    .default_value("/firesteel")
    .with_description("The node under which everything is kept.")
)
HA_ZOOKEEPER_SESSION_TIMEOUT = (
    _key("high-availability.zookeeper.client.session-timeout")
    .duration_type()
    .default_value(Duration.of_seconds(6))
    .with_description("How long a leader may be silent until ZooKeeper takes it for dead. Flink waits a minute.")
)
METRICS_INTERVAL = (
    _key("metrics.fetcher.update-interval")
    .duration_type()
    .default_value(Duration.of_millis(500))
    .with_description("How often slots report what they measure.")
)
PROMETHEUS_ENABLED = (
    _key("metrics.prometheus.enabled")
    .boolean_type()
    .default_value(True)
    .with_description("Whether GET /metrics answers in the format of Prometheus.")
)
CLUSTER_DIRECTORY = (
    _key("cluster.directory")
    .string_type()
    .no_default_value()
    .with_description(
        "Where a cluster keeps its logs, its token and, unless said otherwise, its jobs; by default "
        "firesteel/<cluster id> in $XDG_STATE_HOME or ~/.local/state."
    )
)
