/** What `osl errors CODE` says of a code beside its lines; docs/errors.md has the same. */
export interface Explanation {
  readonly cause: string;
  readonly remedy: string;
  /** A page of docs/, with the heading. */
  readonly page: string;
}

const explain = (cause: string, remedy: string, page: string): Explanation => ({ cause, remedy, page });

/** One of each code of the catalogue. */
export const EXPLANATIONS: ReadonlyMap<string, Explanation> = new Map([
  [
    'E0241',
    explain(
      'RETRIEVE or a metadata question names a text facet that the manifest does not declare, or that you may not see.',
      'List the facets with `osl schema`; a name with capitals is written as it is declared. If it should be there, ask for a grant on it.',
      'osl-sql.md#retrieve',
    ),
  ],
  [
    'E0246',
    explain(
      'The body of the request has `sql`, and it is empty.',
      'Send one SELECT in `sql`, or `osql` or `metrics` in its place.',
      'raw-sql.md',
    ),
  ],
  [
    'E0254',
    explain(
      'A sample was asked of an entity that is not declared, or that you may not see.',
      'List the entities with `osl schema`.',
      'rest.md#samples',
    ),
  ],
  [
    'E0510',
    explain(
      'The database refused or failed the SQL of the gateway. Its words are not passed on, since they could hold values of rows.',
      'Look up the SQLSTATE of the error; the server has the cause in its log under the request id. If the question is at fault, simplify it; else tell the operator.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0511',
    explain(
      'The text is no statement of OSL-SQL: a syntax error, a construct or function that it does not have, types that do not match, a value that is none of its type, or a limit on the size of statements.',
      'Go to the place that the message names and follow its hint. What the language has is on one page, with an example of each form.',
      'osl-sql.md',
    ),
  ],
  [
    'E0512',
    explain(
      'A name in the statement is not declared, or your policy does not show it to you: both say the same, so that nobody can probe for names. Names without quotes are read in small letters.',
      'Compare with `osl schema`; write names with capitals or blanks in double quotes ("EmpId"). If it should be there, `osl why NAME` says what is missing and asks for access.',
      'osl-sql.md#names',
    ),
  ],
  [
    'E0513',
    explain(
      'The request mixes shapes: entities with tables in one statement, or several of `osql`, `sql` and `metrics` in one body.',
      'Use one of them in each request.',
      'rest.md#results',
    ),
  ],
  [
    'E0514',
    explain(
      'Tables are joined on columns that are not declared as keys, and the manifest allows declared joins only.',
      'Join on the keys that the hint names, or on a relationship of `osl schema`. Where BI tools need free joins, the author of the manifest sets `features.joins: any`.',
      'osl-sql.md#from-and-joins',
    ),
  ],
  [
    'E0515',
    explain(
      'The join needs a key that you see masked: rows joined on it would tell what the mask hides.',
      'Leave the join out, or ask for the key in the clear (`osl why`).',
      'osl-sql.md#from-and-joins',
    ),
  ],
  [
    'E0516',
    explain(
      'The statement was cancelled: by you, by your connection that ended, or by an operator (`osl kill`).',
      'Ask again, if you did not mean to.',
      'rest.md#results',
    ),
  ],
  [
    'E0517',
    explain(
      'The statement ran longer than the time limit of the server, or than the `statement_timeout` of the session.',
      'Filter on a key, ask for fewer rows, or ask `osl explain` for the plan. The operator sets `OSL_STATEMENT_TIMEOUT_MS`.',
      'configuration.md#limits',
    ),
  ],
  [
    'E0518',
    explain(
      'The answer has more rows than one answer may have here.',
      'Add a LIMIT, read with a cursor, or aggregate.',
      'configuration.md#limits',
    ),
  ],
  [
    'E0519',
    explain(
      'A step in between (keys of TRAVERSE, passages, groups) is larger than its limit, and an answer of a part of it would be wrong.',
      'Follow the hint: a smaller start, fewer hops, or a higher limit where the step has one.',
      'osl-sql.md#limits',
    ),
  ],
  [
    'E0521',
    explain(
      'The operator generates text, for which the server needs a language model, and none is configured.',
      'Use an operator of the encoder (SIMILARITY, CLASSIFY, TAG, RANK), or have the operator set OSL_CHAT_URL.',
      'content.md#operators',
    ),
  ],
  [
    'E0522',
    explain(
      'The text of a facet cannot be served now: its index is missing or out of date, its model or reranker does not answer, or the store of its database refuses.',
      'The operator runs `osl index --status`, then `osl index`; the message says which part it is.',
      'content.md#indexing',
    ),
  ],
  [
    'E0523',
    explain(
      'The database that has the data does not answer.',
      'Ask again later. The operator finds the address and the cause in the log of the server and in `/ready`.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0524',
    explain(
      'The role with which the gateway reads lacks a right on a table. No grant of yours is missing.',
      'The operator grants SELECT on the table that the log names; `osl doctor` lists all of them.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0525',
    explain(
      'A table or column that the manifest declares is gone from the database.',
      'The operator changes the manifest or the database; `osl doctor` shows where they differ.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0526',
    explain(
      'A column has another type in the database than in the manifest.',
      'The operator changes the manifest or the database; `osl doctor` shows where they differ.',
      'operations.md#database-down-or-schema-changed',
    ),
  ],
  [
    'E0527',
    explain(
      'The database estimates that the question costs more than one of your roles allows (`max_cost`).',
      'Filter on a key, or join fewer tables; `osl explain` shows the plan.',
      'policy.md#limits',
    ),
  ],
  [
    'E0528',
    explain(
      'The database is none that has this construct, by its own documentation.',
      'Write it in another way; the message names the construct.',
      'operations.md#databases-compatible-with-postgres',
    ),
  ],
  [
    'E0529',
    explain(
      'The database failed on a value while it computed: a division by zero, a cast that does not fit, an invalid regular expression.',
      'The SQLSTATE says which; guard the expression with CASE or NULLIF.',
      'errors.md#values-that-cannot-be-computed-with',
    ),
  ],
  [
    'E0530',
    explain(
      'One row of the answer is larger than OSL_MAX_ROW_MIB; its statement was cancelled.',
      'Select fewer columns, or parts of long values, as in left(value, 1000); an operator can raise the limit.',
      'operations.md#large-values',
    ),
  ],
  [
    'E1001',
    explain(
      'The question has no single meaning in this model: several ways lead to a dimension, a metric would count rows twice, or a prepared statement is of an older model.',
      'Name the relationship, ask with a metrics body, or prepare the statement again: the hint says which.',
      'metrics.md#no-double-counting-in-joins',
    ),
  ],
  [
    'E1002',
    explain(
      'What was to be published would not load: the manifest or the policy with it has faults.',
      'Send it to `/osl/validate`, or run `osl validate`, and mend every fault.',
      'rest.md#publishing',
    ),
  ],
  [
    'E2001',
    explain(
      'The newest policy is missing or invalid, and the time for which the last valid one stays in force is over, or there was none: everything is refused.',
      'The log has file and line of the fault. The operator runs `osl validate`, mends it, and reloads (SIGHUP), unless the file is watched.',
      'operations.md#the-policy-is-missing-or-invalid',
    ),
  ],
  [
    'E2003',
    explain(
      'Your rights, or what is served, changed while the question ran.',
      'Ask again: the new rights then hold from its beginning.',
      'operations.md#reload',
    ),
  ],
  [
    'E2101',
    explain(
      'The policy denies this to you: an object by a `deny`, a purpose, an emergency access, or an action that is for admins.',
      '`osl why NAME` says which rule it is, and asks for access. Admins need an admin role in the token.',
      'access.md',
    ),
  ],
  [
    'E2102',
    explain(
      'The request has no token, or none of the roles of its token is below the ceiling of every subject in its chain.',
      'Send a token (`osl token`, `osl login`); compare its roles with `subjects` in the policy.',
      'policy.md#subjects',
    ),
  ],
  [
    'E2103',
    explain(
      'Your grant shows these rows in groups only (`min_group_size`), and the question would show single ones.',
      'Ask for count, sum or avg over groups that are large enough.',
      'errors.md#rows-that-are-for-aggregates-only',
    ),
  ],
  [
    'E2104',
    explain(
      'Emergency access was asked for without a reason, or with one that is too short or too long.',
      'Say in one line what happened and for whom.',
      'access.md',
    ),
  ],
  [
    'E3001',
    explain(
      'The token, password or certificate is not valid: it has expired, was revoked or used already, is signed by nobody known here, or is for another server.',
      'Get a new one (`osl token`, `osl login`); the message says what is wrong with it.',
      'identity.md',
    ),
  ],
  [
    'E4030',
    explain(
      'The `Host` or `Origin` of the request is none that this server serves: a protection against pages of others in your browser.',
      'Call the server by a name that it knows, or have the operator add it to OSL_MCP_HOSTS and OSL_MCP_ORIGINS.',
      'configuration.md#browsers-and-mcp',
    ),
  ],
  [
    'E4040',
    explain(
      'There is nothing at this path, or the session or request is over.',
      'See the paths in `/openapi.json`; pages for people are at `/console`.',
      'rest.md',
    ),
  ],
  [
    'E4050',
    explain(
      'The path takes other methods of HTTP.',
      'Use one of those that the message and the header `Allow` name.',
      'rest.md',
    ),
  ],
  [
    'E4060',
    explain(
      'A value of the answer cannot be written in Arrow, such as an infinite date.',
      'Cast the column to text, or ask for JSON.',
      'rest.md#results',
    ),
  ],
  [
    'E4090',
    explain(
      'The change does not fit the state that its object has: it is a draft, is published already, or was rejected.',
      'Read the object again, and change what it is now.',
      'rest.md#publishing',
    ),
  ],
  [
    'E4120',
    explain(
      'Somebody else changed what is served since you read it.',
      'Read it again, and judge your change against the version that the message names.',
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
      'The body is no JSON by its `Content-Type`.',
      'Send `Content-Type: application/json`.',
      'rest.md',
    ),
  ],
  [
    'E4280',
    explain(
      'A change does not say for which version of what is served it was made.',
      'Send the version that you read, in `If-Match`.',
      'rest.md#publishing',
    ),
  ],
  [
    'E4290',
    explain(
      'Too many requests in a short time, or a budget of the day is used up.',
      'Wait as long as `Retry-After` says. The limits are in the policy.',
      'policy.md#limits',
    ),
  ],
  [
    'E5000',
    explain(
      'A fault of the gateway.',
      'The log of the server has the cause under the request id: report it.',
      'operations.md#server-log',
    ),
  ],
  [
    'E5030',
    explain(
      'The audit log cannot be written, and nothing is answered that is not on record.',
      'The operator frees the disk, or mends the database of the log; answers go on by themselves.',
      'operations.md#audit-log-disk-full-failing-or-stalled',
    ),
  ],
  [
    'E5031',
    explain(
      'The server is busy: its connections, its queue or its memory is full.',
      'Ask again after `Retry-After`. The operator finds what is full in `/metrics` and `osl top`.',
      'operations.md#limits',
    ),
  ],
  [
    'E5032',
    explain(
      'The server is stopping.',
      'Ask again; another one takes over, or this one after its start.',
      'operations.md',
    ),
  ],
  [
    'E5033',
    explain(
      'The keys of the issuer of the token cannot be fetched, so the token can be neither trusted nor refused.',
      'Ask again. The operator checks that the server reaches the issuer.',
      'identity.md#who-may-sign-tokens',
    ),
  ],
  [
    'E5034',
    explain(
      'Your request for access is on record, but the owner of the policy was not notified.',
      'Tell the owner by other means, or ask again later.',
      'access.md',
    ),
  ],
  [
    'E5036',
    explain(
      'The control database, which gateways share, does not answer, so nothing was published.',
      'Try again; a change that was written after all is answered as published already.',
      'operations.md#several-gateways',
    ),
  ],
  [
    'E5037',
    explain(
      'The audit log could not be searched in time.',
      'Ask for a shorter time. The operator runs `osl audit verify`.',
      'audit.md',
    ),
  ],
  [
    'E5038',
    explain(
      'The store in which gateways count limits together has not answered since the start.',
      'Ask again in a moment. The operator checks the store (Redis or the control database).',
      'operations.md#several-gateways',
    ),
  ],
  [
    'E5039',
    explain(
      'The answers under way hold all the memory that OSL_ANSWER_MEMORY_MIB gives them, or the subject holds its half.',
      'Ask again after the time that Retry-After says, or ask for less at once.',
      'operations.md#large-values',
    ),
  ],
]);
