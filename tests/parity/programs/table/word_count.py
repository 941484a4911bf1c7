"""Words are counted, by methods and in SQL, to tables that print."""

from pyflink.table import DataTypes, EnvironmentSettings, FormatDescriptor, Schema, TableDescriptor, TableEnvironment
from pyflink.table.expressions import col, lit

TEXT = """
To be, or not to be,--that is the question:--
Whether 'tis nobler in the mind to suffer
The slings and arrows of outrageous fortune
Or to take arms against a sea of troubles,
And by opposing end them?--To die,--to sleep,--
No more; and by a sleep to say we end
The heartache, and the thousand natural shocks
That flesh is heir to,--'tis a consummation
Devoutly to be wish'd. To die,--to sleep;--
"""

table_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
table_env.get_config().set("parallelism.default", "1")
table_env.get_config().set("table.exec.mini-batch.enabled", "false")
schema = Schema.new_builder().column("word", DataTypes.STRING()).column("count", DataTypes.BIGINT()).build()
descriptor = TableDescriptor.for_connector("print").schema(schema).build()
table_env.create_temporary_table("sink", descriptor)
words = table_env.from_elements(
    [(word,) for word in TEXT.split()], DataTypes.ROW([DataTypes.FIELD("word", DataTypes.STRING())])
)
counts = words.group_by(col("word")).select(col("word"), lit(1).count.alias("count"))
counts.execute_insert("sink").wait()
table_env.create_temporary_view("words", words)
table_env.execute_sql("INSERT INTO sink SELECT LOWER(word), COUNT(*) FROM words GROUP BY LOWER(word)").wait()
table_env.sql_query("SELECT word, CHAR_LENGTH(word) FROM words WHERE word LIKE 't%'").execute_insert(descriptor).wait()
pipeline = counts.insert_into("sink")
print(pipeline, pipeline.get_sink_identifier())
pipeline.execute().wait()
statements = table_env.create_statement_set()
statements.add_insert("sink", counts.where(col("count") > 3))
statements.add_insert_sql("INSERT INTO sink SELECT 'all', COUNT(*) FROM words")
statements.add(
    words.select(col("word"), lit(7).cast(DataTypes.BIGINT())).where(col("word") == "be").insert_into("sink")
)
statements.execute().wait()
print(descriptor.get_options(), descriptor.get_schema(), descriptor.get_partition_keys(), descriptor.get_comment())
file = TableDescriptor.for_connector("filesystem").schema(schema).option("path", "/tmp/x").comment("words")
file = file.format(FormatDescriptor.for_format("csv").option("field-delimiter", ";").build()).partitioned_by("word")
print(sorted(file.build().get_options().items()), file.build().get_partition_keys(), file.build().get_comment())
print(
    table_env.list_tables(), table_env.list_temporary_tables(), table_env.list_views(), table_env.list_temporary_views()
)
table_env.drop_temporary_view("words")
print(table_env.drop_temporary_table("sink"), table_env.list_tables())
