"""Resolves the names of modules that have moved: pickles in checkpoints and savepoints have the names of their time.

An import of an old name gives a stub, whose attributes are those of the new module. Code uses new names only.

The keys of RocksDB rows may be pickles too, and these are compared as bytes. A class whose objects can be part of such
a key stays where it is, or keeps its old name: see ``stored_as``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False  # typing itself would be most of what the import of firesteel costs
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import ModuleType
    from typing import Any, TypeVar

    T = TypeVar("T")

__all__ = ["MOVED", "MovedModuleFinder", "install", "stored_as"]

MOVED: dict[str, str] = {
    "firesteel.cluster.end_recorder": "firesteel.cluster.dispatcher.end_recorder",
    "firesteel.cluster.flame_graphs": "firesteel.cluster.diagnostics.flame_graphs",
    "firesteel.cluster.job_archive": "firesteel.cluster.dispatcher.job_archive",
    "firesteel.cluster.job_loading": "firesteel.cluster.dispatcher.job_loading",
    "firesteel.cluster.last_answer": "firesteel.cluster.diagnostics.last_answer",
    "firesteel.cluster.logs": "firesteel.cluster.diagnostics.logs",
    "firesteel.cluster.managed_job": "firesteel.cluster.dispatcher.managed_job",
    "firesteel.cluster.programs": "firesteel.cluster.dispatcher.programs",
    "firesteel.cluster.prometheus": "firesteel.cluster.diagnostics.prometheus",
    "firesteel.cluster.queryable_state": "firesteel.cluster.diagnostics.queryable_state",
    "firesteel.cluster.resource_manager": "firesteel.cluster.dispatcher.resource_manager",
    "firesteel.cluster.rest.handlers.known_jobs": "firesteel.cluster.diagnostics.known_jobs",
    "firesteel.cluster.result_channels": "firesteel.cluster.dispatcher.result_channels",
    "firesteel.cluster.task_managers": "firesteel.cluster.diagnostics.task_managers",
    "firesteel.common.arrow_encoding": "firesteel.types.arrow_encoding",
    "firesteel.common.arrow_records": "firesteel.types.arrow_decoding",
    "firesteel.common.arrow_schemas": "firesteel.types.arrow",
    "firesteel.common.arrow_types": "firesteel.types.type_information",
    "firesteel.common.cluster_options": "firesteel.config.cluster_options",
    "firesteel.common.composite_typeinfo": "firesteel.types.composite_type_information",
    "firesteel.common.concurrency": "firesteel.process.concurrency",
    "firesteel.common.config_values": "firesteel.config.option_values",
    "firesteel.common.connector": "firesteel.spi",
    "firesteel.common.copying": "firesteel.types.copying",
    "firesteel.common.exchange_options": "firesteel.config.exchange_options",
    "firesteel.common.fault_points": "firesteel.process.fault_points",
    "firesteel.common.frames": "firesteel.process.frames",
    "firesteel.common.futures": "firesteel.process.futures",
    "firesteel.common.memory_size": "firesteel.config.memory_size",
    "firesteel.common.number_records": "firesteel.types.number_records",
    "firesteel.common.options": "firesteel.config.options",
    "firesteel.common.output_tag": "firesteel.api.output_tag",
    "firesteel.common.redaction": "firesteel.config.redaction",
    "firesteel.common.rocksdb_options": "firesteel.config.rocksdb_options",
    "firesteel.common.scheduler_options": "firesteel.config.scheduler_options",
    "firesteel.common.single_precision": "firesteel.types.python",
    "firesteel.common.state": "firesteel.api.state",
    "firesteel.common.state_ttl": "firesteel.api.state_ttl",
    "firesteel.common.tls": "firesteel.config.tls_files",
    "firesteel.common.type_information": "firesteel.types.type_information",
    "firesteel.common.unknown_keys": "firesteel.config.unknown_keys",
    "firesteel.config.values": "firesteel.config.option_values",
    "firesteel.connectors.avro_parquet": "firesteel.formats.parquet.avro_writer",
    "firesteel.connectors.bad_records": "firesteel.formats.bad_records",
    "firesteel.connectors.bucket_directories": "firesteel.connectors.files.bucket_directories",
    "firesteel.connectors.bulk_writers": "firesteel.formats.writers.bulk_writers",
    "firesteel.connectors.collect_sink": "firesteel.connectors.client.collect_sink",
    "firesteel.connectors.collection": "firesteel.connectors.generators.collection",
    "firesteel.connectors.datagen": "firesteel.connectors.generators.datagen",
    "firesteel.connectors.datagen_fields": "firesteel.connectors.generators.datagen_fields",
    "firesteel.connectors.datagen_words": "firesteel.connectors.generators.datagen_words",
    "firesteel.connectors.discarding_sink": "firesteel.connectors.client.discarding_sink",
    "firesteel.connectors.encoders": "firesteel.formats.writers.encoders",
    "firesteel.connectors.file_committer": "firesteel.connectors.files.committer",
    "firesteel.connectors.file_discovery": "firesteel.connectors.files.discovery",
    "firesteel.connectors.file_formats.avro_file": "firesteel.formats.avro.file",
    "firesteel.connectors.file_formats.compression": "firesteel.formats.compression",
    "firesteel.connectors.file_formats.csv_file": "firesteel.formats.csv.file",
    "firesteel.connectors.file_formats.csv_row_ends": "firesteel.formats.csv.row_ends",
    "firesteel.connectors.file_formats.file_split": "firesteel.formats.file_split",
    "firesteel.connectors.file_formats.format_reader": "firesteel.formats.format_reader",
    "firesteel.connectors.file_formats.line_blocks": "firesteel.formats.text.line_blocks",
    "firesteel.connectors.file_formats.line_codec": "firesteel.formats.text.line_codec",
    "firesteel.connectors.file_formats.parquet_file": "firesteel.formats.parquet.file",
    "firesteel.connectors.file_formats.schema_line": "firesteel.formats.text.schema_line",
    "firesteel.connectors.file_formats.stream_format": "firesteel.formats.stream_format",
    "firesteel.connectors.file_formats.text_line": "firesteel.formats.text.text_line",
    "firesteel.connectors.file_sink": "firesteel.connectors.files.sink",
    "firesteel.connectors.file_sink_policies": "firesteel.connectors.files.sink_policies",
    "firesteel.connectors.file_source": "firesteel.connectors.files.source",
    "firesteel.connectors.file_source_reader": "firesteel.connectors.files.source_reader",
    "firesteel.connectors.file_writer": "firesteel.connectors.files.writer",
    "firesteel.connectors.formats.avro_conversion": "firesteel.formats.avro.conversion",
    "firesteel.connectors.formats.avro_format": "firesteel.formats.avro.messages",
    "firesteel.connectors.formats.avro_schema": "firesteel.formats.avro.schema",
    "firesteel.connectors.formats.compiled_schema": "firesteel.formats.compiled_schema",
    "firesteel.connectors.formats.csv_format": "firesteel.formats.csv.messages",
    "firesteel.connectors.formats.csv_reading": "firesteel.formats.csv.line_parser",
    "firesteel.connectors.formats.csv_schema": "firesteel.formats.csv.schema",
    "firesteel.connectors.formats.csv_writing": "firesteel.formats.csv.line_writer",
    "firesteel.connectors.formats.field_types": "firesteel.types.text",
    "firesteel.connectors.formats.json_format": "firesteel.formats.json.messages",
    "firesteel.connectors.formats.json_library": "firesteel.formats.json.library",
    "firesteel.connectors.formats.json_reading": "firesteel.formats.json.row_reader",
    "firesteel.connectors.formats.json_schema": "firesteel.formats.json.schema",
    "firesteel.connectors.formats.json_writing": "firesteel.formats.json.row_writer",
    "firesteel.connectors.formats.row_conversion": "firesteel.types.codec",
    "firesteel.connectors.formats.temporal_text": "firesteel.types.temporal_text",
    "firesteel.connectors.hybrid_enumerator": "firesteel.connectors.hybrid.enumerator",
    "firesteel.connectors.hybrid_reader": "firesteel.connectors.hybrid.reader",
    "firesteel.connectors.hybrid_source": "firesteel.connectors.hybrid.source",
    "firesteel.connectors.hybrid_split": "firesteel.connectors.hybrid.split",
    "firesteel.connectors.input_paths": "firesteel.filesystem.input_paths",
    "firesteel.connectors.kafka.abandoned_transactions": "firesteel.connectors.kafka.sink.abandoned_transactions",
    "firesteel.connectors.kafka.committer": "firesteel.connectors.kafka.sink.committer",
    "firesteel.connectors.kafka.consumer_errors": "firesteel.connectors.kafka.source.consumer_errors",
    "firesteel.connectors.kafka.deserialization": "firesteel.connectors.kafka.source.deserialization",
    "firesteel.connectors.kafka.enumerator": "firesteel.connectors.kafka.source.enumerator",
    "firesteel.connectors.kafka.offset_commits": "firesteel.connectors.kafka.source.offset_commits",
    "firesteel.connectors.kafka.offsets": "firesteel.connectors.kafka.source.offsets",
    "firesteel.connectors.kafka.producer": "firesteel.connectors.kafka.sink.producer",
    "firesteel.connectors.kafka.producer_pool": "firesteel.connectors.kafka.sink.producer_pool",
    "firesteel.connectors.kafka.reader": "firesteel.connectors.kafka.source.reader",
    "firesteel.connectors.kafka.record_producer": "firesteel.connectors.kafka.sink.record_producer",
    "firesteel.connectors.kafka.serialization": "firesteel.connectors.kafka.sink.serialization",
    "firesteel.connectors.kafka.sink_builder": "firesteel.connectors.kafka.sink.builder",
    "firesteel.connectors.kafka.source_builder": "firesteel.connectors.kafka.source.builder",
    "firesteel.connectors.kafka.source_properties": "firesteel.connectors.kafka.source.properties",
    "firesteel.connectors.kafka.split": "firesteel.connectors.kafka.source.split",
    "firesteel.connectors.kafka.topic_check": "firesteel.connectors.kafka.source.topic_check",
    "firesteel.connectors.kafka.transactional_id": "firesteel.connectors.kafka.sink.transactional_id",
    "firesteel.connectors.kafka.transactional_writer": "firesteel.connectors.kafka.sink.transactional_writer",
    "firesteel.connectors.kafka.transactions": "firesteel.connectors.kafka.sink.transactions",
    "firesteel.connectors.kafka.wire_properties": "firesteel.connectors.kafka.sink.wire_properties",
    "firesteel.connectors.kafka.writer": "firesteel.connectors.kafka.sink.writer",
    "firesteel.connectors.local_paths": "firesteel.filesystem.local_paths",
    "firesteel.connectors.nexmark": "firesteel.connectors.generators.nexmark",
    "firesteel.connectors.number_sequence": "firesteel.connectors.generators.number_sequence",
    "firesteel.connectors.parquet": "firesteel.connectors.files.parquet_source",
    "firesteel.connectors.parquet_writer": "firesteel.formats.parquet.writer",
    "firesteel.connectors.part_content": "firesteel.connectors.files.part_content",
    "firesteel.connectors.part_file": "firesteel.connectors.files.part_file",
    "firesteel.connectors.part_store": "firesteel.connectors.files.part_store",
    "firesteel.connectors.postgres.capture_check": "firesteel.connectors.postgres.cdc.capture_check",
    "firesteel.connectors.postgres.capture_session": "firesteel.connectors.postgres.cdc.capture_session",
    "firesteel.connectors.postgres.capture_setup": "firesteel.connectors.postgres.cdc.capture_setup",
    "firesteel.connectors.postgres.captured_table": "firesteel.connectors.postgres.cdc.captured_table",
    "firesteel.connectors.postgres.cdc_enumerator": "firesteel.connectors.postgres.cdc.enumerator",
    "firesteel.connectors.postgres.cdc_errors": "firesteel.connectors.postgres.cdc.errors",
    "firesteel.connectors.postgres.cdc_options": "firesteel.connectors.postgres.cdc.options",
    "firesteel.connectors.postgres.cdc_reader": "firesteel.connectors.postgres.cdc.reader",
    "firesteel.connectors.postgres.cdc_source": "firesteel.connectors.postgres.cdc.source",
    "firesteel.connectors.postgres.cdc_split": "firesteel.connectors.postgres.cdc.split",
    "firesteel.connectors.postgres.change_record": "firesteel.connectors.postgres.cdc.change_record",
    "firesteel.connectors.postgres.chunk_fetcher": "firesteel.connectors.postgres.cdc.chunk_fetcher",
    "firesteel.connectors.postgres.commit_checks": "firesteel.connectors.postgres.sink.commit_checks",
    "firesteel.connectors.postgres.committer": "firesteel.connectors.postgres.sink.committer",
    "firesteel.connectors.postgres.copy_values": "firesteel.connectors.postgres.sink.copy_values",
    "firesteel.connectors.postgres.log_decoder": "firesteel.connectors.postgres.cdc.log_decoder",
    "firesteel.connectors.postgres.pgoutput": "firesteel.connectors.postgres.cdc.pgoutput",
    "firesteel.connectors.postgres.replication_stream": "firesteel.connectors.postgres.cdc.replication_stream",
    "firesteel.connectors.postgres.result_types": "firesteel.types.postgres",
    "firesteel.connectors.postgres.rows": "firesteel.connectors.postgres.sink.row_conversion",
    "firesteel.connectors.postgres.sink.rows": "firesteel.connectors.postgres.sink.row_conversion",
    "firesteel.connectors.postgres.sink_builder": "firesteel.connectors.postgres.sink.builder",
    "firesteel.connectors.postgres.sink_settings": "firesteel.connectors.postgres.sink.settings",
    "firesteel.connectors.postgres.source_enumerator": "firesteel.connectors.postgres.source.enumerator",
    "firesteel.connectors.postgres.source_reader": "firesteel.connectors.postgres.source.reader",
    "firesteel.connectors.postgres.source_splits": "firesteel.connectors.postgres.source.splits",
    "firesteel.connectors.postgres.staging": "firesteel.connectors.postgres.sink.staging",
    "firesteel.connectors.postgres.staging_writer": "firesteel.connectors.postgres.sink.staging_writer",
    "firesteel.connectors.postgres.table_discovery": "firesteel.connectors.postgres.cdc.table_discovery",
    "firesteel.connectors.postgres.transaction_snapshot": "firesteel.connectors.postgres.cdc.transaction_snapshot",
    "firesteel.connectors.postgres.writer": "firesteel.connectors.postgres.sink.writer",
    "firesteel.connectors.print_sink": "firesteel.connectors.client.print_sink",
    "firesteel.connectors.rate_limiter": "firesteel.connectors.base.rate_limiter",
    "firesteel.connectors.s3_committer": "firesteel.connectors.files.s3_committer",
    "firesteel.connectors.s3_part_file": "firesteel.connectors.files.s3_part_file",
    "firesteel.connectors.socket_source": "firesteel.connectors.client.socket_source",
    "firesteel.connectors.split_enumerators": "firesteel.connectors.base.split_enumerators",
    "firesteel.connectors.split_fetcher": "firesteel.connectors.files.split_fetcher",
    "firesteel.connectors.split_reader": "firesteel.connectors.base.split_reader",
    "firesteel.connectors.upload_pool": "firesteel.connectors.files.upload_pool",
    "firesteel.datastream.async_data_stream": "firesteel.datastream.async_io.async_data_stream",
    "firesteel.datastream.async_retry_predicates": "firesteel.datastream.async_io.async_retry_predicates",
    "firesteel.datastream.async_retry_strategies": "firesteel.datastream.async_io.async_retry_strategies",
    "firesteel.datastream.broadcast_stream": "firesteel.datastream.streams.broadcast_stream",
    "firesteel.datastream.call_site": "firesteel.datastream.streams.call_site",
    "firesteel.datastream.connected_streams": "firesteel.datastream.streams.connected_streams",
    "firesteel.datastream.data_stream_sink": "firesteel.datastream.streams.data_stream_sink",
    "firesteel.datastream.field_aggregation": "firesteel.datastream.streams.field_aggregation",
    "firesteel.datastream.keyed_stream": "firesteel.datastream.streams.keyed_stream",
    "firesteel.datastream.operator_settings": "firesteel.datastream.streams.operator_settings",
    "firesteel.datastream.output_types": "firesteel.datastream.streams.output_types",
    "firesteel.datastream.projection": "firesteel.datastream.streams.projection",
    "firesteel.datastream.sink_function": "firesteel.datastream.streams.sink_function",
    "firesteel.datastream.triggers": "firesteel.datastream.windowing.triggers",
    "firesteel.datastream.window_assigners": "firesteel.datastream.windowing.assigners",
    "firesteel.datastream.window_serializers": "firesteel.datastream.windowing.serializers",
    "firesteel.datastream.windowed_stream": "firesteel.datastream.streams.windowed_stream",
    "firesteel.formats.csv.reading": "firesteel.formats.csv.line_parser",
    "firesteel.formats.csv.writing": "firesteel.formats.csv.line_writer",
    "firesteel.formats.json.reading": "firesteel.formats.json.row_reader",
    "firesteel.formats.json.writing": "firesteel.formats.json.row_writer",
    "firesteel.jobmaster.adaptive_scheduler": "firesteel.jobmaster.slots.adaptive_scheduler",
    "firesteel.jobmaster.admission": "firesteel.execution.epochs.read_quota",
    "firesteel.jobmaster.batch_host": "firesteel.execution.batch.host",
    "firesteel.jobmaster.batch_results": "firesteel.execution.batch.results",
    "firesteel.jobmaster.checkpoint_coordinator": "firesteel.jobmaster.checkpoints.coordinator",
    "firesteel.jobmaster.checkpoint_decisions": "firesteel.jobmaster.model.instructions",
    "firesteel.jobmaster.checkpoint_disposal": "firesteel.jobmaster.checkpoints.disposal",
    "firesteel.jobmaster.checkpoint_failures": "firesteel.jobmaster.checkpoints.failures",
    "firesteel.jobmaster.checkpoint_plan": "firesteel.jobmaster.checkpoints.plan",
    "firesteel.jobmaster.checkpoint_requests": "firesteel.jobmaster.checkpoints.requests",
    "firesteel.jobmaster.checkpoint_settings": "firesteel.jobmaster.checkpoints.settings",
    "firesteel.jobmaster.checkpoint_stats": "firesteel.jobmaster.checkpoints.stats",
    "firesteel.jobmaster.completed_checkpoints": "firesteel.jobmaster.checkpoints.completed",
    "firesteel.jobmaster.deployment": "firesteel.graph.deployment",
    "firesteel.jobmaster.end_of_job": "firesteel.jobmaster.model.end_of_job",
    "firesteel.jobmaster.epoch_commits": "firesteel.execution.epochs.commits",
    "firesteel.jobmaster.epoch_host": "firesteel.execution.epochs.host",
    "firesteel.jobmaster.epoch_messages": "firesteel.execution.epochs.messages",
    "firesteel.jobmaster.epoch_settings": "firesteel.jobmaster.checkpoints.epoch_settings",
    "firesteel.jobmaster.epoch_tasks": "firesteel.execution.epochs.tasks",
    "firesteel.jobmaster.epoch_trigger": "firesteel.execution.epochs.trigger",
    "firesteel.jobmaster.events": "firesteel.jobmaster.model.events",
    "firesteel.jobmaster.failure": "firesteel.jobmaster.model.failure",
    "firesteel.jobmaster.guarantees": "firesteel.jobmaster.checkpoints.guarantees",
    "firesteel.jobmaster.host": "firesteel.jobmaster.model.host",
    "firesteel.jobmaster.instructions": "firesteel.jobmaster.model.instructions",
    "firesteel.jobmaster.job_checkpoints": "firesteel.jobmaster.checkpoints.job_checkpoints",
    "firesteel.jobmaster.job_preparation": "firesteel.jobmaster.shell.job_preparation",
    "firesteel.jobmaster.job_serialization": "firesteel.jobmaster.shell.job_serialization",
    "firesteel.jobmaster.job_services": "firesteel.jobmaster.model.job_services",
    "firesteel.jobmaster.job_slots": "firesteel.jobmaster.slots.job_slots",
    "firesteel.jobmaster.job_sources": "firesteel.jobmaster.sources.job_sources",
    "firesteel.jobmaster.job_view": "firesteel.jobmaster.view.job",
    "firesteel.jobmaster.job_view_diagnosis": "firesteel.jobmaster.view.diagnosis",
    "firesteel.jobmaster.job_view_failures": "firesteel.jobmaster.view.failures",
    "firesteel.jobmaster.job_view_metrics": "firesteel.jobmaster.view.metrics",
    "firesteel.jobmaster.job_view_vertices": "firesteel.jobmaster.view.vertices",
    "firesteel.jobmaster.life_cycle": "firesteel.jobmaster.model.life_cycle",
    "firesteel.jobmaster.operator_state_repartitioner": "firesteel.jobmaster.checkpoints.operator_state_repartitioner",
    "firesteel.jobmaster.pending_checkpoint": "firesteel.jobmaster.checkpoints.pending",
    "firesteel.jobmaster.queued_host": "firesteel.jobmaster.shell.queued_host",
    "firesteel.jobmaster.runner": "firesteel.jobmaster.shell.runner",
    "firesteel.jobmaster.settings": "firesteel.jobmaster.model.settings",
    "firesteel.jobmaster.shared_state_registry": "firesteel.jobmaster.checkpoints.shared_state_registry",
    "firesteel.jobmaster.shipping": "firesteel.jobmaster.shell.program_shipping",
    "firesteel.jobmaster.slot_allocator": "firesteel.jobmaster.shell.slot_allocator",
    "firesteel.jobmaster.slot_failures": "firesteel.jobmaster.slots.failures",
    "firesteel.jobmaster.slot_ledger": "firesteel.jobmaster.slots.ledger",
    "firesteel.jobmaster.slot_pool": "firesteel.jobmaster.slots.pool",
    "firesteel.jobmaster.slot_questions": "firesteel.jobmaster.shell.slot_questions",
    "firesteel.jobmaster.source_coordinator": "firesteel.jobmaster.sources.coordinator",
    "firesteel.jobmaster.split_collection": "firesteel.execution.batch.split_collection",
    "firesteel.jobmaster.stage_orders": "firesteel.execution.stages.stage_graph",
    "firesteel.jobmaster.stage_runner": "firesteel.execution.stages.stage_runner",
    "firesteel.jobmaster.state_assignment": "firesteel.jobmaster.checkpoints.state_assignment",
    "firesteel.jobmaster.state_compatibility": "firesteel.jobmaster.checkpoints.state_compatibility",
    "firesteel.jobmaster.story": "firesteel.jobmaster.model.story",
    "firesteel.jobmaster.task_manager_id": "firesteel.jobmaster.slots.task_manager_id",
    "firesteel.jobmaster.timers": "firesteel.jobmaster.model.timers",
    "firesteel.jobmaster.wall_clock": "firesteel.jobmaster.model.wall_clock",
    "firesteel.jobmaster.watermark_alignment": "firesteel.jobmaster.sources.watermark_alignment",
    "firesteel.runtime.artifacts": "firesteel.runtime.slot.artifacts",
    "firesteel.runtime.blocking.batch_task": "firesteel.execution.batch.task",
    "firesteel.runtime.blocking.bucket_split": "firesteel.execution.batch.bucket_split",
    "firesteel.runtime.blocking.column_runs": "firesteel.execution.batch.column_runs",
    "firesteel.runtime.blocking.columns": "firesteel.execution.batch.columns",
    "firesteel.runtime.blocking.epoch_task": "firesteel.execution.epochs.task",
    "firesteel.runtime.blocking.errors": "firesteel.execution.stages.errors",
    "firesteel.runtime.blocking.grouped_input": "firesteel.execution.batch.grouped_input",
    "firesteel.runtime.blocking.grouping_output": "firesteel.execution.batch.grouping_output",
    "firesteel.runtime.blocking.keyed_head": "firesteel.execution.batch.keyed_head",
    "firesteel.runtime.blocking.orders": "firesteel.execution.stages.task_commands",
    "firesteel.runtime.blocking.row_order": "firesteel.execution.stages.row_order",
    "firesteel.runtime.blocking.row_spool": "firesteel.execution.stages.row_spool",
    "firesteel.runtime.blocking.rows": "firesteel.execution.stages.exchange_rows",
    "firesteel.runtime.blocking.stage_task": "firesteel.execution.stages.stage_task",
    "firesteel.runtime.blocking.task_cache": "firesteel.execution.stages.task_cache",
    "firesteel.runtime.bytecode": "firesteel.runtime.codegen.bytecode",
    "firesteel.runtime.checkpoint.assignment": "firesteel.runtime.model.assigned_state",
    "firesteel.runtime.checkpoint.barriers": "firesteel.runtime.task.barriers",
    "firesteel.runtime.checkpoint.channel_state": "firesteel.runtime.task.channel_state",
    "firesteel.runtime.checkpoint.handles": "firesteel.runtime.model.state_handles",
    "firesteel.runtime.checkpoint.metrics": "firesteel.runtime.model.checkpoint_metrics",
    "firesteel.runtime.checkpoint.options": "firesteel.runtime.model.checkpoint_options",
    "firesteel.runtime.checkpoint.slot_snapshots": "firesteel.runtime.task.slot_snapshots",
    "firesteel.runtime.checkpoint.task_snapshots": "firesteel.runtime.task.task_snapshots",
    "firesteel.runtime.context": "firesteel.runtime.chain.context",
    "firesteel.runtime.control": "firesteel.runtime.slot.control",
    "firesteel.runtime.deployment": "firesteel.runtime.model.deployment",
    "firesteel.runtime.elements": "firesteel.runtime.model.elements",
    "firesteel.runtime.failure_place": "firesteel.runtime.failure.failure_place",
    "firesteel.runtime.first_loops": "firesteel.runtime.chain.first_loops",
    "firesteel.runtime.inlining": "firesteel.runtime.codegen.inlining",
    "firesteel.runtime.key_groups": "firesteel.runtime.model.key_groups",
    "firesteel.runtime.mailbox": "firesteel.runtime.slot.mailbox",
    "firesteel.runtime.messages": "firesteel.runtime.model.messages",
    "firesteel.runtime.metrics": "firesteel.runtime.model.metrics",
    "firesteel.runtime.network.serialization": "firesteel.runtime.model.serialization",
    "firesteel.runtime.operator_metrics": "firesteel.runtime.task.operator_metrics",
    "firesteel.runtime.operators.at_work": "firesteel.runtime.codegen.at_work",
    "firesteel.runtime.operators.spec": "firesteel.runtime.model.operator_spec",
    "firesteel.runtime.operators.window.contents": "firesteel.runtime.operators.window.window_contents",
    "firesteel.runtime.operators.window.late": "firesteel.runtime.operators.window.late_records",
    "firesteel.runtime.operators.window.leftovers": "firesteel.runtime.operators.window.leftover_windows",
    "firesteel.runtime.output": "firesteel.runtime.chain.output",
    "firesteel.runtime.ownership": "firesteel.runtime.codegen.ownership",
    "firesteel.runtime.partitioner": "firesteel.runtime.model.partitioner",
    "firesteel.runtime.record_sizes": "firesteel.runtime.task.record_sizes",
    "firesteel.runtime.scheduling": "firesteel.runtime.slot.scheduling",
    "firesteel.runtime.slot_answers": "firesteel.runtime.slot.answers",
    "firesteel.runtime.slot_messages": "firesteel.runtime.task.slot_messages",
    "firesteel.runtime.source_messages": "firesteel.runtime.task.source_messages",
    "firesteel.runtime.stack_sampling": "firesteel.runtime.slot.stack_sampling",
    "firesteel.runtime.state.backend": "firesteel.runtime.state.api.backend",
    "firesteel.runtime.state.chunks": "firesteel.runtime.state.api.chunks",
    "firesteel.runtime.state.compatibility": "firesteel.runtime.state.api.compatibility",
    "firesteel.runtime.state.moved_keys": "firesteel.runtime.state.api.moved_keys",
    "firesteel.runtime.state.operator_state": "firesteel.runtime.state.api.operator_state",
    "firesteel.runtime.state.pickling": "firesteel.runtime.state.api.pickling",
    "firesteel.runtime.state_queries": "firesteel.runtime.slot.state_queries",
    "firesteel.runtime.task_executor": "firesteel.runtime.slot.task_executor",
    "firesteel.runtime.task_metrics": "firesteel.runtime.task.task_metrics",
    "firesteel.runtime.task_services": "firesteel.runtime.task.task_services",
    "firesteel.runtime.thread_dump": "firesteel.runtime.slot.thread_dump",
    "firesteel.runtime.turns": "firesteel.runtime.time.turns",
    "firesteel.runtime.wiring": "firesteel.runtime.slot.wiring",
    "firesteel.spark.blocking.failures": "firesteel.spark.session.failures",
    "firesteel.spark.cluster_info": "firesteel.spark.session.cluster_info",
    "firesteel.spark.function_logging": "firesteel.spark.session.function_logging",
    "firesteel.spark.host": "firesteel.spark.pipelined.host",
    "firesteel.spark.java": "firesteel.spark.session.java",
    "firesteel.spark.liveness": "firesteel.spark.session.liveness",
    "firesteel.spark.slot_main": "firesteel.spark.pipelined.slot_main",
    "firesteel.spark.slot_watch": "firesteel.spark.pipelined.slot_watch",
    "firesteel.spark.slots": "firesteel.spark.session.slots",
    "firesteel.spark.user_output": "firesteel.spark.session.user_output",
    "firesteel.spark.warm_up": "firesteel.spark.session.warm_up",
    "firesteel.testing.programs.building": "firesteel.testing.programs.running.building",
    "firesteel.testing.programs.faults": "firesteel.testing.programs.running.faults",
    "firesteel.testing.programs.in_flight": "firesteel.testing.programs.running.in_flight",
    "firesteel.testing.programs.invariants": "firesteel.testing.programs.running.invariants",
    "firesteel.testing.programs.job": "firesteel.testing.programs.running.job",
    "firesteel.testing.programs.replaying": "firesteel.testing.programs.running.replaying",
    "firesteel.testing.programs.split_source": "firesteel.testing.programs.running.split_source",
    "firesteel.testing.programs.store_sink": "firesteel.testing.programs.running.store_sink",
    "firesteel.testing.programs.way_drawing": "firesteel.testing.programs.running.way_drawing",
    "firesteel.testing.programs.ways": "firesteel.testing.programs.running.ways",
    "firesteel.testing.programs.workers": "firesteel.testing.programs.running.workers",
    "firesteel.testing.simulation.captured": "firesteel.testing.simulation.machine.captured",
    "firesteel.testing.simulation.local_disks": "firesteel.testing.simulation.machine.local_disks",
    "firesteel.testing.simulation.network": "firesteel.testing.simulation.machine.network",
    "firesteel.testing.simulation.scheduler": "firesteel.testing.simulation.machine.scheduler",
    "firesteel.testing.simulation.shared_directory": "firesteel.testing.simulation.machine.shared_directory",
    "firesteel.testing.simulation.sockets": "firesteel.testing.simulation.machine.sockets",
    "firesteel.testing.simulation.standard_library": "firesteel.testing.simulation.machine.standard_library",
    "firesteel.testing.simulation.storage": "firesteel.testing.simulation.machine.storage",
    "firesteel.testing.simulation.story": "firesteel.testing.simulation.machine.story",
    "firesteel.testing.simulation.threads": "firesteel.testing.simulation.machine.threads",
    "firesteel.testing.simulation.zookeeper": "firesteel.testing.simulation.machine.zookeeper",
}
"""The present names of modules, by each name they had before."""


class MovedModuleFinder:
    """Finds modules by old names. As the last finder of ``sys.meta_path`` it does not shadow modules that exist."""

    def __init__(self, moved: Mapping[str, str]) -> None:
        self._moved = moved

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Returns a spec for an old name, and for a package of which only old names are left."""
        if name not in self._moved and not any(old.startswith(f"{name}.") for old in self._moved):
            return None
        # with an empty path, never that of the new package: its modules would be loaded twice, under two names
        return ModuleSpec(name, self, is_package=True)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Leaves the creation of the stub to the import system."""

    def exec_module(self, module: ModuleType) -> None:
        """Gives a stub the attributes of the new module."""
        name = self._moved.get(module.__name__)
        if name is not None:
            vars(module)["__getattr__"] = _attributes(module, import_module(name))


def stored_as(module: str) -> Callable[[type[T]], type[T]]:
    """Keeps the module name under which objects of a class that has moved are pickled.

    A stub of that name is in ``sys.modules`` at once: cloudpickle looks for a class there and nowhere else. One that it
    does not find it pickles by value, and the reader has a second class of that name.
    """

    def keep(cls: type[T]) -> type[T]:
        stub = type(sys)(module)
        stub.__spec__ = ModuleSpec(module, _finder, is_package=True)
        vars(stub)["__getattr__"] = _attributes(stub, sys.modules[cls.__module__])
        sys.modules.setdefault(module, stub)  # not imported: the old package may import this very module
        cls.__module__ = module
        return cls

    return keep


def install() -> None:
    """Lets this process import old names."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)


_finder: Any = MovedModuleFinder(MOVED)


def _attributes(stub: ModuleType, new: ModuleType) -> Any:
    def get_attribute(name: str) -> Any:
        if name.startswith("__"):  # such as __file__: who searches sys.modules for it is to find the new module
            raise AttributeError(f"module {stub.__name__!r} has no attribute {name!r}")
        value = getattr(new, name)
        setattr(stub, name, value)  # the next lookup needs no call
        return value

    return get_attribute
