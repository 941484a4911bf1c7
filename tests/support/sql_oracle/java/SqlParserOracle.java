import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.calcite.config.Lex;
import org.apache.calcite.sql.SqlCall;
import org.apache.calcite.sql.SqlIdentifier;
import org.apache.calcite.sql.SqlLiteral;
import org.apache.calcite.sql.SqlNode;
import org.apache.calcite.sql.SqlNodeList;
import org.apache.calcite.sql.SqlSelect;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.flink.sql.parser.impl.FlinkSqlParserImpl;
import org.apache.flink.sql.parser.validate.FlinkSqlConformance;

/**
 * Reads statements, one per line in base64, and writes for each one what Flink's parser says: "A", for the first item of a
 * SELECT also the tree of its operators in base64, or "R" and the message in base64.
 */
public final class SqlParserOracle {
    private static final SqlParser.Config CONFIG =
            SqlParser.config()
                    .withParserFactory(FlinkSqlParserImpl.FACTORY)
                    .withConformance(FlinkSqlConformance.DEFAULT)
                    .withLex(Lex.JAVA)
                    .withIdentifierMaxLength(256);

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        String line;
        while ((line = in.readLine()) != null) {
            String sql = new String(Base64.getDecoder().decode(line), StandardCharsets.UTF_8);
            out.println(verdict(sql));
        }
        out.flush();
    }

    private static String verdict(String sql) {
        SqlNode node;
        try {
            SqlNodeList statements = SqlParser.create(sql, CONFIG).parseStmtList();
            if (statements.size() != 1) {
                return "R " + encode("not one statement");
            }
            node = statements.get(0);
        } catch (Throwable error) {
            return "R " + encode(String.valueOf(error.getMessage()).split("\n")[0]);
        }
        if (node instanceof SqlSelect) {
            try {
                return "A " + encode(tree(((SqlSelect) node).getSelectList().get(0)));
            } catch (RuntimeException error) {
                return "A";
            }
        }
        return "A";
    }

    private static String tree(SqlNode node) {
        if (node == null) {
            return "-";
        }
        if (node instanceof SqlNodeList) {
            StringBuilder text = new StringBuilder("[");
            for (SqlNode each : (SqlNodeList) node) {
                text.append(text.length() > 1 ? " " : "").append(tree(each));
            }
            return text.append("]").toString();
        }
        if (node instanceof SqlIdentifier) {
            return String.join(".", ((SqlIdentifier) node).names);
        }
        if (node instanceof SqlLiteral || !(node instanceof SqlCall)) {
            return node.toString();
        }
        SqlCall call = (SqlCall) node;
        StringBuilder text = new StringBuilder("(").append(call.getOperator().getName());
        for (SqlNode operand : call.getOperandList()) {
            text.append(" ").append(tree(operand));
        }
        return text.append(")").toString();
    }

    private static String encode(String text) {
        return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
    }

    private SqlParserOracle() {}
}
