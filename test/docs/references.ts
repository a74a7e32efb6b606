import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MANIFEST_SCHEMA } from '../../src/model/manifest/schema/manifest.js';
import { POLICY_SCHEMA } from '../../src/model/manifest/schema/policy.js';
import type { Reference } from './reference-page.js';

const example = (name: string): string =>
  readFileSync(join(process.cwd(), 'examples', 'reference', `${name}.yaml`), 'utf8');

export const MANIFEST_REFERENCE: Reference = {
  title: 'The manifest',
  intro: `A manifest says what there is: databases, entities, links, text, metrics, words. Who may see it is the matter of the [policy](policy.md). \`osl init\` writes both for a database that you have; \`osl validate\` checks them and shows each fault at its place; \`osl diff\` shows what a change does.

This page is written from the JSON Schema that the server itself checks with. Editors that know YAML schemas complete and check these files: \`osl init\` puts the schemas beside them, and a first line such as \`# yaml-language-server: $schema=./manifest.schema.json\`. The examples are parts of one file, [\`examples/reference/manifest.yaml\`](../examples/reference/manifest.yaml), which has every key there is.`,
  schema: MANIFEST_SCHEMA,
  example: example('manifest'),
  sections: {
    version: 'The version of the format, not of your model.',
    tenant:
      'Whose model this is. The policy names the same tenant, else it is refused with P0115, and a token of another is refused with E3001.',
    connectors:
      'The databases, and of each the tables and columns that the model is made of. This is also where personal and otherwise sensitive data are declared: by a person, per column; nothing is guessed from names. A label has the mask that the policy gives it, and is `deny` where it has none.\n\nThe URL in the variable `url_env` is of a role that may read and nothing else. A second variable, of the same name with `_SYSTEM` behind it, has a role that may create tables in a schema of its own: `osl index`, `osl discover`, suggestions and facets need it, questions do not. Its SQL: [System credentials](operations.md#system-credentials).',
    entities:
      'What questions are asked about. The sealed keys (`entity_key_columns`) are the columns on which OSL-SQL joins; a key of several columns is joined on all of them. On anything else it joins where `features.joins` is `any` ([features](#features)).\n\nA computed column is an expression over one row and the rows that it refers to ([decision 67](decisions/0067-computed-columns.md)). Who may see all that it reads sees it, over masked values where those are masked, and NULL where the row that it refers to is hidden; a grant does not name it. `sensitivity` adds a label of its own: then it is for those alone who are shown that label in the clear ([decision 72](decisions/0072-foreign-schemas.md)).\n\nWhat `cache` does, and what it tells, [caching.md](caching.md) says.',
    relationships:
      'Foreign keys, as metrics and TRAVERSE walk them; a key of several columns is a list at both ends. Metrics walk from many to one only, so that no join inflates a sum.',
    bridges:
      'Tables that link many to many. In the domain map a bridge is one edge; in OSL-SQL it can be joined under its name, with grants of its own.',
    rollups:
      'Pre-aggregations: tables of what was aggregated before, from which questions are answered where that changes nothing but how old the answer is ([caching.md](caching.md#pre-aggregations)). `osl rollup build` builds them.',
    rerankers:
      'Models elsewhere that order passages anew where RETRIEVE asks for it and a grant on the facet says `decode: true`; a facet names those that its passages may be sent to ([retrieval.md](retrieval.md#rerankers), [content.md](content.md#rerankers)).',
    facets:
      'Text to be asked with RETRIEVE. Each version is a store of its own, redacted before it is cut, indexed and embedded; a caller is served the version that leaves out exactly what it may not read ([content.md](content.md), [retrieval.md](retrieval.md)).',
    metrics: 'Named figures, the same in every tool ([metrics.md](metrics.md)).',
    lexicon: 'The words of the business, which `GET /osl/schema/resolve` finds.',
    traverse: 'How far a walk through the graph may go.',
    operators: 'Over how many rows operators may go ([operators.md](operators.md#over-rows)).',
    features:
      "`joins` says what relations may be joined on. `declared`, the default, is the contract: equalities of sealed keys, in whatever syntax and at whatever depth, else E0514. `any` is an extension that allows any predicate, or none: **set it where BI tools connect**, which join to their own subqueries on any column ([bi.md](bi.md)). It is of OSL-SQL alone; raw SQL joins on anything, passages on sealed keys in either case ([decision 112](decisions/0112-the-join-rule.md)).\n\nThe others switch extensions of the contract's forms off ([forms and extensions](osl-sql.md#forms-and-extensions)); they are on unless told. What is off is refused with E0511, which names the switch, for every caller and on every surface, raw SQL too. `features` of the schema tells planners. What BI tools ask of the catalog (`\\d`) and metrics bodies are not touched.",
    raw_sql: 'Tables that SQL may name as they are called upstream ([raw-sql.md](raw-sql.md)).',
  },
};

export const POLICY_REFERENCE: Reference = {
  title: 'The policy',
  intro: `A policy says who may see what of the [manifest](manifest.md). What it does not grant does not exist for a caller. It is read at start and at each reload, whole or not at all.

This page is written from the JSON Schema that the server itself checks with. The examples are parts of [\`examples/reference/policy.yaml\`](../examples/reference/policy.yaml).

**How rights are worked out.** A token claims roles (\`acl_roles\`). A role counts where it is below the ceiling of every subject in the token's chain: roles are intersected by name, so an agent needs the roles of whom it acts for in its own ceiling. The grants of the roles that remain are united, cell by cell: a column of a row is seen where one grant covers both. Row filters with \`attribute(…)\` must hold for every subject of the chain; a missing attribute makes the filter false. Deny rules beat every grant.`,
  schema: POLICY_SCHEMA,
  example: example('policy'),
  sections: {
    version: 'The version of the format.',
    tenant: 'The tenant of the manifest.',
    subjects:
      'Everybody who may appear in a token, as `sub` or in the chain. One who is not here has an empty ceiling, and takes every right from a chain.\n\nAn attribute is text, a number, true or false, a list of these, or `{any: true}`, which matches everything. It must fit each column that a filter of the subject\'s roles compares it with, else the policy is refused (P0110): numbers fit numeric columns, `true` and `false` boolean ones, and text is read as the column\'s type. Between quotes, a number is text: write `"007"` so, and more than 15 digits. An empty list matches nothing.',
    roles:
      "A grant shows columns of one entity, bridge or facet. `rows` is SQL over its columns; literals, `attribute(…)` and what [functions.md](functions.md) lists may be used. With `min_group_size` a grant shows no rows, only figures over groups of so many entities. `starts`, `ends`, `when` and `for` say when a grant counts; where all of that does not hold, the grant is not there. They are looked at for every request, with the clock of this machine, the peer of its own socket and the token as it was verified: a right ends at once, also for sessions, cursors and portals that are open ([decision 91](decisions/0091-grants-with-conditions.md)).\n\n`break_glass` is for emergencies: the grant counts for `minutes` after the caller has said why, in the header `OSL-Break-Glass` (percent-encoded; REST and `/mcp`, with each request) or by `SET osl.break_glass = '…'` (until `RESET`, `DISCARD ALL` or the end of the session), `per_day` times in 24 hours. The reason is in the audit log, word for word, as the request `break_glass`; each decision under it has its id. The server logs an error and, where `OSL_ALARM_URL` is set, tells that. Only a person breaks a glass: a token whose chain is longer does not.",
    privacy_units:
      'Where one person has many rows, `min_group_size: 10` on visits could be ten visits of one. With a unit it is ten of those whom the column tells apart. The column need not be granted. `dominance` needs an entity that has one row for each: with a unit it is refused.',
    purposes:
      'What data may be asked for. A purpose counts where it is among `purposes` of every subject in the chain and, where the token has a claim `purpose` (a text or a list), in that. A request names its own in the header `OSL-Purpose`, or by `SET osl.purpose`; one that is not allowed is refused. Without one, the claim counts where it is a single purpose. The decision in the audit log has it.',
    masks:
      'How cells of a sensitivity label are shown to those without `unmask`. `redact`: text as `[redacted]`, other types as NULL. `null`: NULL. `hash`: of a text its keyed hash, equal for equal values, so that it can be joined and counted. `partial`: of a text its first character and `***`. `year`: of a date or a moment the beginning of its year. On columns of other types these three are as `redact`. `deny`: the column cannot be used at all.',
    order:
      'Entities whose answers come in the order of their keys wherever a question leaves the order open. Without it the planner chooses, by statistics that hidden rows shape ([threat model](threat-model.md)).',
    limits:
      'Requests a second and subject, each kind in a bucket of its own; and under `subject`, `tenant` and in a role (`limits`) what may be taken in a second, minute, hour or day: requests, rows and bytes of answers, and seconds of a session of the database. Each of those that name a caller holds. A window begins with its first request. What is spent refuses the next question before it runs: 429 with `Retry-After`, when the window ends; on the wire 53400. An answer that is under way goes on to its end, so what is under way at a time may go beyond. Several processes [have one count](operations.md#limits).',
    exchange:
      'How people and agents whom an issuer of identity tokens knows become subjects ([identity.md](identity.md#exchange)): the first rule that takes a token decides. Such a subject need not be listed; where it is, it has no more than both give it. A rule that is changed in anything, or removed, ends the tokens that it made.',
    service_accounts:
      'Logins of the wire with a password, for tools that cannot bring a token. `osl scram` makes the verifier; the password itself is nowhere. Over TLS the proof is bound to the certificate that the client was shown (SCRAM-SHA-256-PLUS, `channel_binding=require` of libpq).',
    certificates:
      'Who a client certificate is, where the server asks for one ([operations.md](operations.md#client-certificates)). Over REST and MCP it takes the place of a token that was not sent; on the wire the user that logs in is the subject of the rule, and no password is asked for. A certificate that fits no rule, or several, is nobody.',
  },
};
