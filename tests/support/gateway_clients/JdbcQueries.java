import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.Statement;

/** Executes statements with Flink's JDBC driver: JdbcQueries URL STATEMENT... */
public class JdbcQueries {
    public static void main(String[] arguments) throws Exception {
        Class.forName("org.apache.flink.table.jdbc.FlinkDriver");
        try (Connection connection = DriverManager.getConnection(arguments[0]);
                Statement statement = connection.createStatement()) {
            System.out.println(connection.getCatalog() + "." + connection.getSchema());
            for (int index = 1; index < arguments.length; index++) {
                execute(statement, arguments[index]);
            }
        }
    }

    private static void execute(Statement statement, String sql) throws Exception {
        boolean hasRows;
        try {
            hasRows = statement.execute(sql);
        } catch (Exception error) {
            String[] causes = String.valueOf(error.getCause()).split("Caused by: ");
            System.out.println("failed: " + causes[causes.length - 1].split("\\n")[0]);
            return;
        }
        if (!hasRows) {
            System.out.println("no rows");
            return;
        }
        try (ResultSet rows = statement.getResultSet()) {
            ResultSetMetaData columns = rows.getMetaData();
            for (int index = 1; index <= columns.getColumnCount(); index++) {
                System.out.print(columns.getColumnName(index) + " " + columns.getColumnTypeName(index) + ",");
            }
            System.out.println();
            while (rows.next()) {
                for (int index = 1; index <= columns.getColumnCount(); index++) {
                    System.out.print(rows.getObject(index) + ",");
                }
                System.out.println();
            }
        }
    }
}
