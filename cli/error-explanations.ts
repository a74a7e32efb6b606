export interface Explanation {
  readonly cause: string;
  readonly remedy: string;
  /** Page of docs/, with the heading's anchor. */
  readonly page: string;
}

const explain = (cause: string, remedy: string, page: string): Explanation => ({ cause, remedy, page });

export const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map([
  [
    'E0241',
    explain(
      'RETRIEVE or a metadata query names a text facet that the manifest does not declare, or that you may not see.',
      'List the facets with `osl schema`, and write the name exactly as declared, including capitals. If it should be there, request a grant on it.',
      'osl-sql.md#retrieve',
    ),
  ],
  [
    'E0246',
    explain(
      'The request body has an empty `sql`.',
      'Send one SELECT in `sql`, or use `osql` or `metrics` instead.',
      'raw-sql.md',
    ),
  ],
  [
    'E0254',
    explain(
      'A sample was requested of an entity that is not declared, or that you may not see.',
      'List the entities with `osl schema`.',
      'rest.md#samples',
    ),
  ],
  [
    'E0510',
    explain(
      "The database refused the gateway's SQL, or failed to run it. Its message is not passed on, because it could contain values of rows.",
      'Look up the SQLSTATE of the error. The server log has the cause under the request ID. Simplify the query, or report it to the operator.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0511',
    explain(
      'The text is not a valid OSL-SQL statement: a syntax error, an unsupported construct or function, types that do not match, a value that is not valid for its type, or a statement that is too large.',
      'Go to the position in the message and follow its hint. The page below lists the whole language, with an example of each form.',
      'osl-sql.md',
    ),
  ],
  [
    'E0512',
    explain(
      'A name in the statement is not declared, or the policy hides it from you. The error is the same in both cases, so that nobody can probe for names. Names without quotes are read in lower case.',
      'Compare with `osl schema`. Write names with capitals or spaces in double quotes ("EmpId"). If it should be there, `osl why NAME` explains what is missing and can request access.',
      'osl-sql.md#names',
    ),
  ],
  [
    'E0513',
    explain(
      'The request mixes forms: entities and tables in one statement, or several of `osql`, `sql` and `metrics` in one body.',
      'Use one of them in each request.',
      'rest.md#results',
    ),
  ],
  [
    'E0514',
    explain(
      'Tables are joined on columns that are not declared as keys, and the manifest allows declared joins only.',
      'Join on the keys in the hint, or on a relationship listed by `osl schema`. If BI tools need other joins, the author of the manifest sets `features.joins: any`.',
      'osl-sql.md#from-and-joins',
    ),
  ],
  [
    'E0515',
    explain(
      'The join uses a key that is masked for you: joined rows would reveal what the mask hides.',
      'Leave out the join, or request the unmasked key (`osl why`).',
      'osl-sql.md#from-and-joins',
    ),
  ],
  [
    'E0516',
    explain(
      'The statement was cancelled: by you, because your connection ended, or by an operator (`osl kill`).',
      'Run it again if this was not intended.',
      'rest.md#results',
    ),
  ],
  [
    'E0517',
    explain(
      'The statement ran longer than the time limit of the server, or the `statement_timeout` of the session.',
      'Filter on a key, read fewer rows, or look at the plan with `osl explain`. The operator sets `OSL_STATEMENT_TIMEOUT_MS`.',
      'configuration.md#limits',
    ),
  ],
  [
    'E0518',
    explain(
      'The result has more rows than a result may have here.',
      'Add a LIMIT, read with a cursor, or aggregate.',
      'configuration.md#limits',
    ),
  ],
  [
    'E0519',
    explain(
      'An intermediate step (keys of TRAVERSE, passages, groups) exceeds its limit, and a result computed from a part of it would be wrong.',
      "Follow the hint: start from fewer keys, use fewer hops, or raise the step's limit if it has one.",
      'osl-sql.md#limits',
    ),
  ],
  [
    'E0521',
    explain(
      'This operator generates text, which needs a language model, and none is configured.',
      'Use an encoder operator (SIMILARITY, CLASSIFY, TAG, RANK), or have OSL_CHAT_URL set on the server.',
      'content.md#operators',
    ),
  ],
  [
    'E0522',
    explain(
      'The text of a facet is unavailable: its index is missing or out of date, its model or reranker does not respond, or its store cannot be read.',
      'The message names the part. The operator runs `osl index --status`, then `osl index`.',
      'content.md#indexing',
    ),
  ],
  [
    'E0523',
    explain(
      'The database with the data does not respond.',
      'Try again later. The operator finds the address and cause in the server log and in `/ready`.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0524',
    explain(
      "The gateway's database role lacks a privilege on a table. Your own access is fine.",
      'The operator grants SELECT on the table that the log names; `osl doctor` lists all such tables.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0525',
    explain(
      'A table or column that the manifest declares no longer exists in the database.',
      'The operator corrects the manifest or the database; `osl doctor` shows the differences.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0526',
    explain(
      'A column has another type in the database than in the manifest.',
      'The operator corrects the manifest or the database; `osl doctor` shows the differences.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0527',
    explain(
      "The database's cost estimate of the query exceeds what one of your roles allows (`max_cost`).",
      'Filter on a key, or join fewer tables; `osl explain` shows the plan.',
      'policy.md#limits',
    ),
  ],
  [
    'E0528',
    explain(
      'The database does not support this construct, according to its documentation.',
      'Write the query in another way; the message names the construct.',
      'operations.md#databases-compatible-with-postgres',
    ),
  ],
  [
    'E0529',
    explain(
      'The database could not compute with a value: division by zero, a cast that does not fit, an invalid regular expression.',
      'The SQLSTATE says which. Guard the expression with CASE or NULLIF.',
      'errors.md#values-that-cannot-be-computed-with',
    ),
  ],
  [
    'E0530',
    explain(
      'One row of the result is larger than OSL_MAX_ROW_MIB, so the statement was cancelled.',
      'Select fewer columns, or parts of long values, as in left(value, 1000); the operator can raise the limit.',
      'operations.md#large-values',
    ),
  ],
  [
    'E1001',
    explain(
      'The query is ambiguous in this model: several paths lead to a dimension, a metric would count rows twice, or a prepared statement belongs to an older model.',
      'Name the relationship, use a metrics body, or prepare the statement again: the hint says which.',
      'metrics.md#no-double-counting-in-joins',
    ),
  ],
  [
    'E1002',
    explain(
      'The manifest or policy with this change would be invalid, so it was not published.',
      'Send it to `/osl/validate`, or run `osl validate`, and fix every error.',
      'rest.md#publishing',
    ),
  ],
  [
    'E2001',
    explain(
      'The newest policy is missing or invalid, and the time for which the last valid one stays in force is over, or there was none. Every request is refused.',
      'The server log has the file and line. The operator runs `osl validate`, fixes the policy, and reloads (SIGHUP) unless the file is watched.',
      'operations.md#the-policy-is-missing-or-invalid',
    ),
  ],
  [
    'E2003',
    explain(
      'Your rights, or the served model, changed while the query was running.',
      'Run it again under the new rights.',
      'operations.md#reload',
    ),
  ],
  [
    'E2101',
    explain(
      'The policy denies this: an object by a `deny`, a purpose, break-glass access, or an action for admins only.',
      '`osl why NAME` says which rule, and can request access. Admins need an admin role in their token.',
      'access.md',
    ),
  ],
  [
    'E2102',
    explain(
      'The request has no token, or no role of its token is within the ceiling of every subject in its chain.',
      'Send a token (`osl token`, `osl login`); compare its roles with `subjects` in the policy.',
      'policy.md#subjects',
    ),
  ],
  [
    'E2103',
    explain(
      'Your grant allows aggregates over these rows only (`min_group_size`), and the query would show single rows.',
      'Use count, sum or avg over groups that are large enough.',
      'errors.md#rows-that-are-for-aggregates-only',
    ),
  ],
  [
    'E2104',
    explain(
      'Break-glass access was requested without a reason, or with one that is too short or too long.',
      'State in one line what happened and for whom.',
      'access.md',
    ),
  ],
  [
    'E3001',
    explain(
      'The token, password or certificate is not valid: it has expired, was revoked or already used, is signed by an unknown issuer, or is for another server.',
      'Get a new one (`osl token`, `osl login`); the message says what is wrong with it.',
      'identity.md',
    ),
  ],
  [
    'E4030',
    explain(
      'The server does not accept the `Host` or `Origin` of this request. This protects against other web pages in your browser.',
      'Use a host name that the server knows, or have it added to OSL_MCP_HOSTS and OSL_MCP_ORIGINS.',
      'configuration.md#browsers-and-mcp',
    ),
  ],
  [
    'E4040',
    explain(
      'This path does not exist, or the session or request has ended.',
      '`/openapi.json` lists the paths; the browser console is at `/console`.',
      'rest.md',
    ),
  ],
  [
    'E4050',
    explain(
      'The path does not support this HTTP method.',
      'Use one of the methods in the message and the header `Allow`.',
      'rest.md',
    ),
  ],
  [
    'E4060',
    explain(
      'A value of the result, such as an infinite date, cannot be represented in Arrow.',
      'Cast the column to text, or request JSON.',
      'rest.md#results',
    ),
  ],
  [
    'E4090',
    explain(
      'The change does not fit the state of its object: it is a draft, already published, or rejected.',
      'Read the object again, and change its current version.',
      'rest.md#publishing',
    ),
  ],
  [
    'E4120',
    explain(
      'Somebody else published a change since you read the current version.',
      'Read it again, and check your change against the version in the message.',
      'rest.md#publishing',
    ),
  ],
  [
    'E4130',
    explain(
      'The body of the request is too large.',
      'Send long lists as parameters, or in several requests.',
      'configuration.md#limits',
    ),
  ],
  [
    'E4150',
    explain(
      'The `Content-Type` of the body is not JSON.',
      'Send `Content-Type: application/json`.',
      'rest.md',
    ),
  ],
  [
    'E4280',
    explain(
      'The change does not state the version on which it is based.',
      'Send the version that you read in `If-Match`.',
      'rest.md#publishing',
    ),
  ],
  [
    'E4290',
    explain(
      'Too many requests in a short time, or a limit of the policy is used up.',
      'Wait as long as `Retry-After` says. The policy sets the limits.',
      'policy.md#limits',
    ),
  ],
  [
    'E5000',
    explain(
      'A bug in the gateway.',
      'The server log has the cause under the request ID. Please report it.',
      'operations.md#server-log',
    ),
  ],
  [
    'E5030',
    explain(
      'The audit log cannot be written, and the gateway refuses every request that it cannot record.',
      'The operator frees space on the disk, or repairs the database of the log. The gateway then continues by itself.',
      'operations.md#audit-log-disk-full-failing-or-stalled',
    ),
  ],
  [
    'E5031',
    explain(
      'The server is busy: its connections, its queue or its memory is full.',
      'Try again after `Retry-After`. `/metrics` and `osl top` show the operator what is full.',
      'operations.md#limits',
    ),
  ],
  [
    'E5032',
    explain(
      'The server is stopping.',
      'Try again: another server takes over, or this one after its restart.',
      'operations.md',
    ),
  ],
  [
    'E5033',
    explain(
      "The keys of the token's issuer cannot be fetched, so the token cannot be verified.",
      'Try again. The operator checks that the server can reach the issuer.',
      'identity.md#who-may-sign-tokens',
    ),
  ],
  [
    'E5034',
    explain(
      'Your access request was recorded, but the owner of the policy was not notified.',
      'Contact the owner directly, or try again later.',
      'access.md',
    ),
  ],
  [
    'E5036',
    explain(
      'The control database, which gateways share, does not respond, so nothing was published.',
      'Try again. If the change was written after all, the response says that it is already published.',
      'operations.md#several-gateways',
    ),
  ],
  [
    'E5037',
    explain(
      'The audit log could not be searched in time.',
      'Search a shorter period. The operator runs `osl audit verify`.',
      'audit.md',
    ),
  ],
  [
    'E5038',
    explain(
      'The store in which gateways count limits together has not responded since startup.',
      'Try again in a moment. The operator checks the store (Redis or the control database).',
      'operations.md#several-gateways',
    ),
  ],
  [
    'E5039',
    explain(
      'Running queries use all the memory for results (OSL_ANSWER_MEMORY_MIB), or those of one subject use half of it.',
      'Try again after `Retry-After`, or read fewer rows at a time.',
      'operations.md#large-values',
    ),
  ],
]);
