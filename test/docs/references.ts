import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_SCHEMA } from '../../src/model/manifest/schema/manifest.js';
import { POLICY_SCHEMA } from '../../src/model/manifest/schema/policy.js';
import type { Reference } from './reference-page.js';

const example = (name: string): string =>
  readFileSync(join(process.cwd(), 'examples', 'reference', `${name}.yaml`), 'utf8');

export const MANIFEST_REFERENCE: Reference = {
  title: 'The manifest',
  intro: `A manifest describes your data: databases, entities, links, text, metrics and business terms. The [policy](policy.md) defines who may see it.

- \`osl init\` writes both files for an existing database.
- \`osl validate\` checks them and shows each error at its place.
- \`osl diff\` shows the effect of a change.

This page is generated from the JSON Schema with which the server checks the file. Editors with support for YAML schemas complete and check both files: \`osl init\` writes the schemas beside them, and the first line of a file names its schema, such as \`# yaml-language-server: $schema=./manifest.schema.json\`. The examples are parts of one file that has every key, [\`examples/reference/manifest.yaml\`](../examples/reference/manifest.yaml).`,
  schema: MANIFEST_SCHEMA,
  example: example('manifest'),
  sections: {
    version: 'The version of the file format, not of your model.',
    tenant:
      'The owner of the model. The policy must name the same tenant, otherwise it is refused with P0115. A token of another tenant is refused with E3001.',
    connectors:
      'The databases, with the tables and columns that the model uses. Personal and otherwise sensitive data are also declared here, by a person and per column; nothing is guessed from names. The policy defines the mask of each label; a label without a mask is `deny`.\n\nThe URL in the variable `url_env` belongs to a role that can only read. A second variable, with the same name and the suffix `_SYSTEM`, belongs to a role that may create tables in schemas of its own: `osl index`, `osl discover`, suggestions and facets need it, other queries do not. SQL for that role: [System credentials](operations.md#system-credentials).',
    entities:
      'The things that can be queried. OSL-SQL joins on the join keys (`entity_key_columns`, also called *sealed keys*); join a key of several columns on each of them, because one alone pairs more rows. Joins on anything else need `features.joins: any` ([features](#features)).\n\nA computed column is an expression over one row and the rows that it refers to ([decision 67](decisions/0067-computed-columns.md)). Everyone who may see everything it reads can see it, without a grant that names it. It is computed from masked values if those are masked, and is NULL if the row it refers to is hidden. `sensitivity` adds a label: then only callers who see that label unmasked can see the column ([decision 72](decisions/0072-foreign-schemas.md)).\n\n`cache` is explained in [caching.md](caching.md), including what a cached result may reveal.',
    relationships:
      'Foreign keys, which metrics and TRAVERSE follow. A key of several columns is a list at both ends. Metrics follow them only from many to one, so no join inflates a sum.',
    bridges:
      'Tables that link two entities many to many. In the domain map a bridge is one edge. In OSL-SQL it can be joined under its own name, with its own grants.',
    rollups:
      'Pre-aggregations: tables of precomputed aggregates. A query reads one if that changes nothing about the result except its age ([caching.md](caching.md#pre-aggregations)). Build them with `osl rollup build`.',
    rerankers:
      'External models that reorder passages. One is used if RETRIEVE requests it, a grant on the facet has `decode: true`, and the facet lists it ([retrieval.md](retrieval.md#rerankers), [content.md](content.md#rerankers)).',
    facets:
      'Facets: text that can be searched with RETRIEVE. Each version is stored separately, and redacted before it is cut into passages, indexed and embedded. A caller reads the version that leaves out exactly what the caller may not see ([content.md](content.md), [retrieval.md](retrieval.md)).',
    metrics: 'Named aggregates, with the same result in every tool ([metrics.md](metrics.md)).',
    lexicon: 'Business terms, which `GET /osl/schema/resolve` finds.',
    traverse: 'Limits of TRAVERSE.',
    operators: 'The number of rows that operators may process ([operators.md](operators.md#over-rows)).',
    features:
      '`joins` decides on what relations may be joined:\n\n- `declared`, the default, is the contract: only equality of join keys, in any syntax and at any depth; anything else is E0514.\n- `any` is an extension that allows any predicate, or none, except in a NATURAL JOIN of entities. **Set it if BI tools connect**: they join to their own subqueries on any column ([bi.md](bi.md)).\n\nThe setting applies to OSL-SQL only. Raw SQL joins on anything, and passages join on join keys in both cases ([decision 112](decisions/0112-the-join-rule.md)).\n\nThe other keys switch off extensions to the forms of the contract ([forms and extensions](osl-sql.md#forms-and-extensions)); all are on by default. A query that uses a disabled one is refused with E0511, which names the key, for every caller and on every surface, raw SQL too. Planners find the settings in `features` of the schema. [Catalog statements](osl-sql.md#statements) of BI tools (`\\d`, `select version()`) and metrics bodies are not affected.',
    raw_sql: 'Tables that SQL may call by their original names ([raw-sql.md](raw-sql.md)).',
  },
};

const OVERLAPS = `## Overlapping questions

Two large groups may differ by one person: the sum over all, and the sum over all but Ada. With \`overlap\` on a grant with \`min_group_size\`, the gateway remembers which rows each answer rests on, and refuses a question (E0537) whose answer, together with earlier ones, would show a figure of fewer entities ([decision 152](decisions/0152-overlapping-questions.md)).

\`\`\`yaml
roles:
  research:
    grants:
      - on: customer
        columns: [region, tax]
        min_group_size: 10
        overlap: { mode: refuse, with: research, days: 7 }
\`\`\`

**What is refused.** A difference of two figures that rests on fewer than \`min_group_size\` entities: filters that differ in a few persons, in two questions or in one (FILTER, ROLLUP); and any combination of answers that leaves the figure of one or two small sets of rows, such as a total without all groups that are shown. Sums and means of a column are compared with those of the same column, counts with counts. The message says neither which earlier question it is nor which value.

**What is answered.** The same question again, unless it reads the clock; questions about the same rows, however they are written; and questions that differ in enough entities.

**Whose answers.** By default those of each subject; an agent's answers count for the agent and for the user it acts for. Subjects whose grants name the same group in \`with\` share one history, whatever their rights are: name one for people who talk to each other. What one of them uses up, rows or refusals, is used up for all. Gateways with a [control database](operations.md#several-gateways) share histories, which a restart does not end.

**How long.** From the first answer, for \`days\` days. Then the history begins anew: an answer of one period is not compared with one of the next. A history has 2,097,152 rows, 1,024 sets of them, 8,192 classes of rows that are in the same sets, and 32 refusals at most, and comparing an answer takes about a second of processor time at most; then only a question that was answered before, with the same conditions and under the same policy and manifest, is answered until it ends, which the message says. It is stored as keyed hashes of keys; no value and no text of a question is in it.

**What can be asked.** Aggregates of one relation that is granted so, with joins to parents. Refused are joins that repeat its rows, two such relations in one block, and rows that another grant shows. Changes of such figures cannot be [subscribed](rest.md#subscriptions) to. The primary key and the privacy unit are whole numbers, \`numeric\`, text, \`uuid\` or \`boolean\`, and not masked.

**What it costs.** Before a question runs, the hashes of the rows behind it are read and compared: 4 to 8 seconds for a million rows, measured on two processors, and 12 MB to store them. It does not grow with the number of earlier answers, but for the comparison. Without \`overlap\` nothing is read.

**What it does not stop.** Changed data: rows that change between two different questions count as a difference, and the second is refused; but a question that is repeated is answered, and its two answers may differ by one person whose change is known. Combinations that leave three or more small sets of rows, unless they are the difference of two figures. Subjects who are not in one group, and answers of different periods. What is known from elsewhere: whoever knows nine of ten salaries gets the tenth. What a refusal says: that somebody is in the difference, which is why refusals are limited. A hidden group whose rows are counted under another entity of another table.`;

const BUDGETS = `## Budgets

Nobody reads the thousands of questions that an agent asks, so its owner limits what it may use: what each user may have it read, what it may use in a day, and what one task may use.

\`\`\`yaml
roles:
  agent:
    limits:
      - { name: agent_day, per: day, each: subject, requests: 10000, rows: 100000 }
      - { name: agent_for_user, per: hour, each: chain, rows: 20000, cost: 5000000, tokens: 200000 }
      - { name: agent_task, per: task, each: chain, requests: 20, rows: 1000 }
\`\`\`

When a task of the agent \`user:scout\`, which acts for \`user:ann\`, has asked 20 questions, the next one is refused: \`a limit of the policy is used up: agent_task: 20 requests per task of the chain user:ann > user:scout\`, with the time at which it renews. An answer is never silently shortened by a limit: a query is refused, answered completely, or ends with an error.

**Whose use.** A subject is the last one of a chain, and has one count whoever it acts for. \`chain\` counts each chain separately: an agent that acts for two users has two counts. A role without \`each\` has one count for all its members.

**Tasks.** The claim \`osl_task\` of the token names the task. Without it, the client may: with the header \`OSL-Task\` (percent-encoded) over REST and MCP, \`osl/task\` in \`_meta\` of an MCP call, or \`SET osl.task\` (or the startup option) on the Postgres port. A name has 1 to 200 characters. A limit per task refuses requests that name no task (E0532). The count of a task is kept for a day from its first request; a task that goes on longer begins again. A client that names its tasks itself can begin a new one at any time: limits per task bind it only together with limits per hour or day, or with tokens that name the task. The token exchange keeps the claim if the rule lists it under \`claims\`. The audit log has the task in the \`detail\` of the decision.

**What is counted.** \`cost\` is the planner's estimate for the main statement of each query, as for \`max_cost\`; what RETRIEVE and TRAVERSE read before it is not estimated, and an answer from the cache costs nothing. With such a limit every query takes the full path, and its estimate is used for a minute. \`tokens\` are those that servers of language models and rerankers report, and a third of the bytes of a request where they report none; texts of a query that are embedded always count by this estimate. \`seconds\` and \`cost\` depend on all rows, hidden ones too ([threat model](threat-model.md)); requests, rows, bytes and tokens do not.

**How exact.** Gateways report what they count within some 10 ms and hear the sum of all. A limit may be exceeded by what they answer in that time, and by the queries that are running when it is used up. For 10,000 requests or rows, with small answers from two gateways at once, that is less than 1 %. While the store of the counts does not respond, each process assumes that the others use as much as itself.

\`osl ps --limits\` (for each chain that is connected, or with \`--of\` for one) and the admin console show how much of a limit is used and when it renews.

### Different entities

A limit on rows does not tell one person who is read a thousand times from a thousand persons. \`entities\` counts the different ones that a caller is shown:

\`\`\`yaml
roles:
  agent:
    limits:
      - { name: people_day, per: day, each: chain, entities: 200, of: [customer] }
      - { name: sensitive_task, per: task, each: chain, entities: 20, labels: [pii, health] }
\`\`\`

\`of\` names entities, and \`labels\` counts every entity or bridge that has a column with such a label. Those of one limit are counted together. It takes part in everything that is said above: whose use, tasks, names, \`osl ps --limits\`. What differs:

- **What was shown already costs nothing.** A customer counts once in a window, however often and on whichever surface or gateway it is shown, from the cache or not.
- **An answer that would show one too many stops with an error** (E4290, 53400), before the rows that would show it are sent. It never ends as if it were complete: an ErrorResponse on the Postgres port, \`problem\` in the trailer of a stream, an MCP error; as JSON, the connection is broken off, or the response is 429 if nothing was sent. What was sent by then counts. The limit is never exceeded, neither by queries that run at the same time nor by several gateways.
- **The gateway must know whom each row shows.** It adds the primary key to the query, counts it, and removes it from the rows. So it does not matter which columns are selected. A row of a join shows each entity that it is made of.
- **Other queries are refused** with E0536: aggregates over such an entity, unless they group by its primary key; DISTINCT without it; UNION, INTERSECT and EXCEPT (UNION ALL is counted); subqueries in expressions, such as \`in (select …)\`; window functions other than row numbers and ranks; WITH RECURSIVE; RETRIEVE, TRAVERSE and operators over it. The same holds if the caller does not see the primary key, or sees it masked by anything but \`hash\`.
- **Rows under \`min_group_size\` do not count.** They are shown in groups only. A caller who is granted nothing but groups of an entity can aggregate it freely; give an agent that needs both two roles, and let it claim one at a time.

Queries of a caller with such a limit that read such an entity take the full path. A foreign key is not an entity: \`select customer_id from order\` shows no customer, unless \`order\` counts as well. While the store of the counts does not respond, such queries are refused (E5038). A window may have at most 100,000 entities. Gateways must have the same keys (\`OSL_KEYS_DIR\`), as for \`hash\` masks; with different ones an entity counts once for each. Background: [decision 151](decisions/0151-different-entities.md).`;

export const POLICY_REFERENCE: Reference = {
  title: 'The policy',
  intro: `A policy defines who may see which parts of the [manifest](manifest.md). What it does not grant does not exist for a caller. The gateway reads the whole file at startup and at each reload; if any of it is invalid, none of it is applied.

This page is generated from the JSON Schema with which the server checks the file. The examples are parts of [\`examples/reference/policy.yaml\`](../examples/reference/policy.yaml).

**How the rights of a caller are computed:**

1. A token names a *subject* (a user, service or agent) and claims roles (\`acl_roles\`). Its *chain* lists everyone involved, for example an agent and the user for whom it acts.
2. A role counts only if it is in the *ceiling* (the roles that a subject may use) of every subject in the chain. An agent therefore needs the roles of its user in its own ceiling.
3. The grants of the remaining roles are united cell by cell: a column of a row is visible if one grant covers both.
4. Row filters with \`attribute(…)\` must hold for every subject of the chain. If an attribute is missing, the filter is false.
5. Deny rules override every grant.`,
  schema: POLICY_SCHEMA,
  example: example('policy'),
  sections: {
    version: 'The version of the file format.',
    tenant: 'The tenant of the manifest.',
    subjects:
      'Everyone who may appear in a token, as `sub` or in the chain. A subject that is not listed has an empty ceiling; a chain that contains it therefore has no rights.\n\nAn attribute is text, a number, true or false, a list of these, or `{any: true}`, which matches everything. Its type must fit each column with which a filter of the subject\'s roles compares it, otherwise the policy is refused (P0110): numbers fit numeric columns, `true` and `false` boolean columns, and text is read as the column\'s type. A number in quotes is text: write `"007"` in quotes, and numbers of more than 15 digits. An empty list matches nothing.',
    attributes:
      "Attributes whose values are in the database: the teams of a member, whether a user is an administrator, the folders below those of a team. The values of such an attribute are those of `column` in the rows that `rows` selects for the subject, and are compared like values that the policy states; without `column` the value is `true` if there is such a row (`true = attribute('name')`). `rows` may name other attributes, also ones read from an entity; if the subject lacks one of them, it lacks this one too. A subject without rows has an empty list, which matches nothing.\n\nThe gateway reads them before it evaluates the rights of a request, from the primary, one statement for each attribute and subject, and only those that a filter of the caller needs. The entity is read as a whole, whatever the caller is granted of it; its values appear in no answer. With `max_age` a change counts after that many seconds at the latest, and requests between need no further statement. An open cursor or portal keeps the rows that it has begun with. A subject may have 10,000 values of an attribute, and 1 MiB of them; with more its requests are refused (E0511), as they are if the values cannot be read. The entity's connector cannot have `row_security` ([decision 146](decisions/0146-attributes-from-entities.md)).",
    roles:
      "A grant shows columns of one entity, bridge or facet (text about an entity that can be searched). `rows` is an SQL predicate over its columns; it may use literals, the functions in [functions.md](functions.md), and `attribute('name')` on the right of `=` or alone in IN: `region = attribute('region')` is true if the value is one of those of the attribute. It must not be able to fail: if it fails on a row, so do all queries that read that row, also of callers who may not see it, and the error tells them that it exists. So write `amount / nullif(quantity, 0) > 2`, not `amount / quantity > 2`. With `min_group_size` a grant shows no rows, only aggregates over groups of at least that many entities.\n\n`starts`, `ends`, `when` and `for` limit when a grant applies; unless all of them hold, the grant does not exist. They are checked for every request, with this machine's clock, the remote address of the connection, and the verified token. A right therefore ends at once, also in open sessions, cursors and portals; a statement that is running then is completed ([decision 91](decisions/0091-grants-with-conditions.md)).\n\n`break_glass` is for emergencies. The caller activates the grant by stating a reason: in the header `OSL-Break-Glass` (percent-encoded; REST and `/mcp`, with each request) or with `SET osl.break_glass = '…'` (until `RESET`, `DISCARD ALL` or the end of the session). It is then active for `minutes`, at most `per_day` times in 24 hours. The audit log records the reason word for word as the request `break_glass`, and each decision made under it refers to its ID. The server logs an error and, if `OSL_ALARM_URL` is set, sends an alarm there. A reason has 8 to 500 characters on one line. A caller that acts for somebody cannot use it. The gateway does not know whether a subject is a person: give such a role to no agent.\n\n`approval` is for what a person decides case by case. The grant is active only while somebody with the role `by`, a data or an admin role, has approved it for the caller’s chain, for at most `minutes`. A query that lacks nothing else is refused with E0535, which says how to [request the approval](access.md#approvals). Nobody approves for themselves or for an agent that acts for them, and an agent that acts for somebody approves nothing. Give the role `by` to people only: a token of an agent alone is not distinguished from that of a person. An approval belongs to the grant as it was written: if the grant changes, it has to be given again ([decision 150](decisions/0150-approvals.md)).",
    claims:
      '`osl policy push` and `osl policy activate` then refuse a policy unless all [claims](policy-proofs.md) about it are proved. They also ask for it if the policy that is replaced says so. Gateways do not ask for proofs.',
    privacy_units:
      'If one person has many rows, `min_group_size: 10` on visits could mean ten visits of one person. With a privacy unit it means ten different values of the given column, for example ten customers. The column need not be granted. `dominance` needs an entity with one row per person: together with a privacy unit it is refused.',
    purposes:
      'The purposes for which data may be queried. A purpose is allowed if it is among the `purposes` of every subject in the chain and, if the token has a claim `purpose` (text or a list), in that claim. A request states its purpose in the header `OSL-Purpose` or with `SET osl.purpose`; a purpose that is not allowed is refused. Without one, the claim applies if it has a single purpose. The decision in the audit log contains the purpose.',
    masks:
      'How cells with a sensitivity label are shown to callers without `unmask`:\n\n- `redact`: text becomes `[redacted]`, other types NULL.\n- `null`: NULL.\n- `hash`: a keyed hash of a text. Equal values have equal hashes, so they can be joined and counted.\n- `partial`: the first character of a text and `***`.\n- `year`: the first day of the year of a date or timestamp.\n- `deny`: the column cannot be used at all.\n\nOn columns of other types `hash`, `partial` and `year` act like `redact`.',
    order:
      'Entities whose results are sorted by key wherever a query leaves the order open. Without it the planner chooses the order, using statistics that include hidden rows ([threat model](threat-model.md)).',
    limits:
      'Requests per second of each subject, counted separately for each kind of request. Under `subject`, `chain`, `tenant` and in a role (`limits`) further limits per second, minute, hour, day or task: requests, returned rows and bytes, seconds of a database session, cost, model tokens and [different entities](#different-entities). All limits that apply to a caller must hold. A window begins with its first request. If a limit is used up, the next query is refused before it runs: 429 with `Retry-After` (the end of the window), or 53400 on the Postgres port; the message names the limit and the hint the time at which it renews. A running query is not stopped, except by a limit on entities, so queries that run at the same time may exceed a limit. Several processes [count together](operations.md#limits). [Budgets](#budgets) has an example for agents.',
    exchange:
      'Maps people and agents known to an issuer of identity tokens to subjects ([identity.md](identity.md#exchange)). The first rule that matches a token applies. The resulting subject need not be listed under `subjects`; if it is, it has only the rights that both allow. Changing or removing a rule invalidates the tokens made by it.',
    service_accounts:
      'Logins with a password on the Postgres port, for tools that cannot send a token. `osl scram` creates the verifier; the password itself is stored nowhere. Over TLS the proof is bound to the server certificate that the client received (SCRAM-SHA-256-PLUS, `channel_binding=require` in libpq).',
    certificates:
      'Maps client certificates to subjects, if the server requests certificates ([operations.md](operations.md#client-certificates)). Over REST and MCP a certificate replaces a token that was not sent. On the Postgres port the user name must be the subject of the rule, and no password is requested. A certificate that matches no rule, or several rules, identifies nobody.',
  },
  more: `${BUDGETS}

${OVERLAPS}`,
};
