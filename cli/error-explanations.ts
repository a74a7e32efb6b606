export interface Explanation {
  readonly cause: string;
  readonly remedy: string;
  /** Page in docs/, including the anchor of the heading. */
  readonly page: string;
}

const EXPLAINED: Readonly<Record<string, Explanation>> = {
  E0241: {
    cause:
      'RETRIEVE or a metadata query names a text facet that the manifest does not declare, or that you may not see.',
    remedy:
      'List the facets with `osl schema`, and write the name exactly as declared, including capitals. If it should be there, request a grant on it.',
    page: 'osl-sql.md#retrieve',
  },
  E0246: {
    cause: 'The request body has an empty `sql`.',
    remedy: 'Send one SELECT in `sql`, or use `osql` or `metrics` instead.',
    page: 'raw-sql.md',
  },
  E0254: {
    cause: 'A sample was requested of an entity that is not declared, or that you may not see.',
    remedy: 'List the entities with `osl schema`.',
    page: 'rest.md#samples',
  },
  E0510: {
    cause:
      "The database refused the gateway's SQL, or failed to run it. Its message is not passed on, because it could contain values of rows.",
    remedy:
      'Look up the SQLSTATE of the error. The server log has the cause under the request ID. Simplify the query, or report it to the operator.',
    page: 'operations.md#database-down-or-schema-changed',
  },
  E0511: {
    cause:
      'The text is not a valid OSL-SQL statement: a syntax error, an unsupported construct or function, types that do not match, a value that is not valid for its type, or a statement that is too large.',
    remedy:
      'Go to the position in the message and follow its hint. The page below lists the whole language, with an example of each form.',
    page: 'osl-sql.md',
  },
  E0512: {
    cause:
      'A name in the statement is not declared, or the policy hides it from you. The error is the same in both cases, so that nobody can probe for names. Names without quotes are read in lower case.',
    remedy:
      'Compare with `osl schema`. Write names with capitals or spaces in double quotes ("EmpId"). If it should be there, `osl why NAME` explains what is missing and can request access.',
    page: 'osl-sql.md#names',
  },
  E0513: {
    cause:
      'The request mixes forms: entities and tables in one statement, or several of `osql`, `sql` and `metrics` in one body.',
    remedy: 'Use one of them in each request.',
    page: 'rest.md#results',
  },
  E0514: {
    cause:
      'Tables are joined on columns that are not declared as keys, and the manifest allows declared joins only.',
    remedy:
      'Join on the keys in the hint, or on a relationship listed by `osl schema`. If BI tools need other joins, the author of the manifest sets `features.joins: any`.',
    page: 'osl-sql.md#from-and-joins',
  },
  E0515: {
    cause: 'The join uses a key that is masked for you: joined rows would reveal what the mask hides.',
    remedy: 'Leave out the join, or request the unmasked key (`osl why`).',
    page: 'osl-sql.md#from-and-joins',
  },
  E0516: {
    cause:
      'The statement was cancelled: by you, because your connection ended, or by an operator (`osl kill`).',
    remedy: 'Run it again if this was not intended.',
    page: 'rest.md#results',
  },
  E0517: {
    cause:
      'The statement ran longer than the time limit of the server, or the `statement_timeout` of the session.',
    remedy:
      'Filter on a key, read fewer rows, or look at the plan with `osl explain`. The operator sets `OSL_STATEMENT_TIMEOUT_MS`.',
    page: 'configuration.md#limits',
  },
  E0518: {
    cause: 'The result has more rows than a result may have here.',
    remedy: 'Add a LIMIT, read with a cursor, or aggregate.',
    page: 'configuration.md#limits',
  },
  E0519: {
    cause:
      'An intermediate step (keys of TRAVERSE, passages, groups) exceeds its limit, and a result computed from a part of it would be wrong.',
    remedy:
      "Follow the hint: start from fewer keys, use fewer hops, or raise the step's limit if it has one.",
    page: 'osl-sql.md#limits',
  },
  E0521: {
    cause: 'This operator generates text, which needs a language model, and none is configured.',
    remedy:
      'Use an encoder operator (SIMILARITY, CLASSIFY, TAG, RANK), or have OSL_CHAT_URL set on the server.',
    page: 'content.md#operators',
  },
  E0522: {
    cause:
      'The text of a facet is unavailable: its index is missing or out of date, its model or reranker does not respond, or its store cannot be read.',
    remedy: 'The message names the part. The operator runs `osl index --status`, then `osl index`.',
    page: 'content.md#indexing',
  },
  E0523: {
    cause: 'The database with the data does not respond.',
    remedy: 'Try again later. The operator finds the address and cause in the server log and in `/ready`.',
    page: 'operations.md#database-down-or-schema-changed',
  },
  E0524: {
    cause: "The gateway's database role lacks a privilege on a table. Your own access is fine.",
    remedy: 'The operator grants SELECT on the table that the log names; `osl doctor` lists all such tables.',
    page: 'operations.md#database-down-or-schema-changed',
  },
  E0525: {
    cause: 'A table or column that the manifest declares no longer exists in the database.',
    remedy: 'The operator corrects the manifest or the database; `osl doctor` shows the differences.',
    page: 'operations.md#database-down-or-schema-changed',
  },
  E0526: {
    cause: 'A column has another type in the database than in the manifest.',
    remedy: 'The operator corrects the manifest or the database; `osl doctor` shows the differences.',
    page: 'operations.md#database-down-or-schema-changed',
  },
  E0527: {
    cause: "The database's cost estimate of the query exceeds what one of your roles allows (`max_cost`).",
    remedy: 'Filter on a key, or join fewer tables; `osl explain` shows the plan.',
    page: 'policy.md#limits',
  },
  E0528: {
    cause:
      'The database does not support this construct according to its documentation, or is known to answer it wrongly.',
    remedy: 'Write the query in another way; the message names the construct.',
    page: 'operations.md#databases-compatible-with-postgres',
  },
  E0529: {
    cause:
      'The database could not compute with a value: division by zero, a cast that does not fit, an invalid regular expression.',
    remedy: 'The SQLSTATE says which. Guard the expression with CASE or NULLIF.',
    page: 'errors.md#values-that-cannot-be-computed-with',
  },
  E0530: {
    cause: 'One row of the result is larger than OSL_MAX_ROW_MIB, so the statement was cancelled.',
    remedy:
      'Select fewer columns, or parts of long values, as in left(value, 1000); the operator can raise the limit.',
    page: 'operations.md#large-values',
  },
  E0531: {
    cause:
      'The tables are distributed over several servers by Citus, which refuses queries of this form, most of them only if they read several shards.',
    remedy:
      'Do what the hint says. Most often: filter on one value of the distribution column, such as one tenant, or join on that column too.',
    page: 'scale-out.md#what-citus-refuses',
  },
  E0532: {
    cause: 'A limit of the policy counts per task, and the request names no task, or not in a valid form.',
    remedy:
      'Name the task in header `OSL-Task`, with `SET osl.task`, or as `osl/task` in `_meta` of an MCP call. The claim `osl_task` of a token comes first.',
    page: 'policy.md#budgets',
  },
  E0533: {
    cause:
      'The answer of this query may differ although no row has changed: it chooses among ties, adds up floats, or depends on the clock. Changes of it would mean nothing.',
    remedy:
      'Subscribe to the rows, or to aggregates that are exact, and send the query itself after each event.',
    page: 'rest.md#subscriptions',
  },
  E0534: {
    cause:
      'A policy to compare with the served one could not be started: it has problems, or another one is being compared.',
    remedy: 'Correct the policy as the message says, or stop the other one: `osl policy shadow stop`.',
    page: 'policy-tests.md#a-shadow-policy',
  },
  E0535: {
    cause:
      'A grant of the policy would answer this query, but only after a person has approved it for you: for a time, or for a task.',
    remedy:
      'Request it: send the query with a reason, as the hint says. Wait for the decision, and send the query again.',
    page: 'access.md#approvals',
  },
  E0536: {
    cause:
      'A limit counts the different entities that answers show, and it is not known from this query which ones its rows show: it aggregates them, or reads them in a subquery, with DISTINCT, UNION, RETRIEVE or TRAVERSE.',
    remedy: 'Select rows, or group by the primary key as well.',
    page: 'policy.md#different-entities',
  },
  E0537: {
    cause:
      'Your grant compares each answer with earlier ones (`overlap`). Together they would show figures of a few members, or the query cannot be compared, or earlier answers use up what can be compared.',
    remedy:
      'Repeat earlier queries, which are always answered, or choose filters and groups that differ in more members. A message with a time says when earlier answers are forgotten.',
    page: 'policy.md#overlapping-questions',
  },
  E1001: {
    cause:
      'The query is ambiguous in this model: several paths lead to a dimension, a metric would count rows twice, or a prepared statement belongs to an older model.',
    remedy: 'Name the relationship, use a metrics body, or prepare the statement again: the hint says which.',
    page: 'metrics.md#no-double-counting-in-joins',
  },
  E1002: {
    cause: 'The manifest or policy with this change would be invalid, so it was not published.',
    remedy: 'Send it to `/osl/validate`, or run `osl validate`, and fix every error.',
    page: 'rest.md#publishing',
  },
  E2001: {
    cause:
      'The newest policy is missing or invalid, and the time for which the last valid one stays in force is over, or there was none. Every request is refused.',
    remedy:
      'The server log has the file and line. The operator runs `osl validate`, fixes the policy, and reloads (SIGHUP) unless the file is watched.',
    page: 'operations.md#the-policy-is-missing-or-invalid',
  },
  E2003: {
    cause: 'Your rights, or the served model, changed while the query was running.',
    remedy: 'Run it again under the new rights.',
    page: 'operations.md#reload',
  },
  E2101: {
    cause:
      'The policy denies this: an object by a `deny`, a purpose, break-glass access, or an action for admins only.',
    remedy:
      '`osl why NAME` says which rule, and can request access. Admins need an admin role in their token.',
    page: 'access.md',
  },
  E2102: {
    cause:
      'The request has no token, or no role of its token is within the ceiling of every subject in its chain.',
    remedy: 'Send a token (`osl token`, `osl login`); compare its roles with `subjects` in the policy.',
    page: 'policy.md#subjects',
  },
  E2103: {
    cause:
      'Your grant allows aggregates over these rows only (`min_group_size`), and the query would show single rows.',
    remedy: 'Use count, sum or avg over groups that are large enough.',
    page: 'errors.md#rows-that-are-for-aggregates-only',
  },
  E2104: {
    cause: 'Break-glass access was requested without a reason, or with one that is too short or too long.',
    remedy: 'State in one line what happened and for whom.',
    page: 'access.md',
  },
  E3001: {
    cause:
      'The token, password or certificate is not valid: it has expired, was revoked or already used, is signed by an unknown issuer, or is for another server.',
    remedy: 'Get a new one (`osl token`, `osl login`); the message says what is wrong with it.',
    page: 'identity.md',
  },
  E4030: {
    cause:
      'The server does not accept the `Host` or `Origin` of this request. This protects against other web pages in your browser.',
    remedy: 'Use a host name that the server knows, or have it added to OSL_MCP_HOSTS and OSL_MCP_ORIGINS.',
    page: 'configuration.md#browsers-and-mcp',
  },
  E4040: {
    cause: 'This path does not exist, or the session or request has ended.',
    remedy: '`/openapi.json` lists the paths; the browser console is at `/console`.',
    page: 'rest.md',
  },
  E4050: {
    cause: 'The path does not support this HTTP method.',
    remedy: 'Use one of the methods in the message and the header `Allow`.',
    page: 'rest.md',
  },
  E4060: {
    cause: 'A value of the result, such as an infinite date, cannot be represented in Arrow.',
    remedy: 'Cast the column to text, or request JSON.',
    page: 'rest.md#results',
  },
  E4090: {
    cause: 'The change does not fit the state of its object: it is a draft, already published, or rejected.',
    remedy: 'Read the object again, and change its current version.',
    page: 'rest.md#publishing',
  },
  E4120: {
    cause: 'Somebody else published a change since you read the current version.',
    remedy: 'Read it again, and check your change against the version in the message.',
    page: 'rest.md#publishing',
  },
  E4130: {
    cause: 'The body of the request is too large.',
    remedy: 'Send long lists as parameters, or in several requests.',
    page: 'configuration.md#limits',
  },
  E4150: {
    cause: 'The `Content-Type` of the body is not JSON in UTF-8, or the body is compressed.',
    remedy: 'Send `Content-Type: application/json`, without `Content-Encoding`.',
    page: 'rest.md',
  },
  E4280: {
    cause: 'The change does not state the version on which it is based.',
    remedy: 'Send the version that you read in `If-Match`.',
    page: 'rest.md#publishing',
  },
  E4290: {
    cause: 'Too many requests in a short time, or a limit of the policy is used up.',
    remedy:
      'Wait as long as `Retry-After` says. If a limit of the policy is used up, the message names it, and the hint says when it renews.',
    page: 'policy.md#limits',
  },
  E5000: {
    cause: 'A bug in the gateway.',
    remedy: 'The server log has the cause under the request ID. Please report it.',
    page: 'operations.md#server-log',
  },
  E5030: {
    cause: 'The audit log cannot be written, and the gateway refuses every request that it cannot record.',
    remedy:
      'The operator frees space on the disk, or repairs the database of the log. The gateway then continues by itself.',
    page: 'operations.md#audit-log-disk-full-failing-or-stalled',
  },
  E5031: {
    cause: 'The server is busy: its connections, its queue or its memory is full.',
    remedy: 'Try again after `Retry-After`. `/metrics` and `osl top` show the operator what is full.',
    page: 'operations.md#limits',
  },
  E5032: {
    cause: 'The server is stopping.',
    remedy: 'Try again: another server takes over, or this one after its restart.',
    page: 'operations.md',
  },
  E5033: {
    cause: "The keys of the token's issuer cannot be fetched, so the token cannot be verified.",
    remedy: 'Try again. The operator checks that the server can reach the issuer.',
    page: 'identity.md#who-may-sign-tokens',
  },
  E5034: {
    cause: 'Your access request was recorded, but the owner of the policy was not notified.',
    remedy: 'Contact the owner directly, or try again later.',
    page: 'access.md',
  },
  E5036: {
    cause: 'The control database, which gateways share, does not respond, so nothing was published.',
    remedy: 'Try again. If the change was written after all, the response says that it is already published.',
    page: 'operations.md#several-gateways',
  },
  E5037: {
    cause: 'The audit log could not be searched in time.',
    remedy: 'Search a shorter period. The operator runs `osl audit verify`.',
    page: 'audit.md',
  },
  E5038: {
    cause:
      'The store in which gateways count limits together has not responded since startup; or a limit counts different entities, and the store does not respond.',
    remedy: 'Try again in a moment. The operator checks the store (Redis or the control database).',
    page: 'operations.md#several-gateways',
  },
  E5039: {
    cause:
      'Running queries use all the memory for results (OSL_ANSWER_MEMORY_MIB), or those of one subject use half of it.',
    remedy: 'Try again after `Retry-After`, or read fewer rows at a time.',
    page: 'operations.md#large-values',
  },
};

export const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map(Object.entries(EXPLAINED));
