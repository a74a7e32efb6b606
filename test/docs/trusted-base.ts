/** The trusted base: files on whose correctness "no hidden value leaves" rests. `docs/trusted-base.md` is made from it. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { ROOT } from '../tools/cli/support.js';

/** Most lines that the base may have: a file that joins it, or grows, is a decision. */
export const MOST_LINES = 14_330;

interface Part {
  readonly title: string;
  readonly why: string;
  readonly files: readonly TrustedFile[];
}

interface TrustedFile {
  readonly file: string;
  readonly why: string;
  /** Findings of somebody who read it and had not written it; null: not read so yet. */
  readonly read: string | null;
}

const file = (path: string, why: string, read: string | null = null): TrustedFile => ({
  file: path,
  why,
  read,
});

const PARTS: readonly Part[] = [
  {
    title: 'Who asks, and what they may see',
    why: 'A token that is taken for another, or a grant too many, is a hidden row shown: nothing behind this part can notice.',
    files: [
      file(
        'policy/tokens/token.ts',
        'the signature of a token; the form of a token',
        'Looked for a key used with another algorithm, a header that brings a key, a cache hit past its end, a cache kept over a withdrawn key. Time is checked at each hit, and `generation` drops what was verified while keys were forgotten. The form of a token: one spelling for each token: no padding, no spare bits, no part more. Nothing found.',
      ),
      file(
        'policy/tokens/claims.ts',
        'what a token says',
        'Looked for claims that are left out and then believed, and comparisons with NaN. Each is typed and bounded; times are compared so that NaN refuses; `members` are read from the gateway’s own exchange alone. Nothing found.',
      ),
      file(
        'policy/tokens/keys.ts',
        'which key a token may be signed with',
        'A secret signs HS256 alone, a public key the one algorithm of its kind; weak keys are refused at the start. Nothing found.',
      ),
      file(
        'policy/tokens/strict-json.ts',
        'JSON in which no name stands twice',
        'Looked for two readers that take one text for two things: a key twice (also escaped, also nested, also `__proto__`), half a surrogate pair, bytes that are no UTF-8. Each is refused; what is left is read into a Map. Time is linear. Nothing found.',
      ),
      file(
        'policy/tokens/certificate.ts',
        'who the holder of a certificate is',
        'Looked for a name that is read as another one: separators in a common name, several of them, quoted alternative names, a date that is none. Node escapes by RFC 2253, a name that cannot be read fits no rule, two rules that fit are nobody, and an end that is not a number refuses. Nothing found.',
      ),
      file(
        'policy/tokens/revocation.ts',
        'tokens that were revoked',
        'Looked for a revocation that is forgotten too early, or passed by: tokens that an exchange made carry the ids of their sources, and clocks are taken at their worst. A time that is not a number would revoke nothing; it comes from columns that are `bigint not null`, or from files whose form is checked. Nothing found.',
      ),
      file(
        'policy/access.ts',
        'rights of a whole chain, and the signature that keys caches; conditions of grants; purposes that a caller may state',
        'Read for parts that the signature lacks: roles, deny rules, pattern of attributes, open conditions and both versions are in it; values of attributes are not, on purpose, since they are parameters. Whoever shares more than a plan by signature must compare the chain too: `route.ts` did not. Conditions of grants: looked for conditions that hold where something is unknown. All refuse on null, NaN and absent; the night that crosses midnight asks for the day before. Purposes that a caller may state: below the ceiling of every subject of the chain, and within those of the token. Attributes from entities: looked for an access kept for other values, and for values of one subject given to another. Each token kept up to 64 readings in memory; it keeps the last one now.',
      ),
      file(
        'policy/rights.ts',
        'grants and deny rules of a relation',
        'Looked for a deny that a grant beats, a facet left when its entity is denied, and a missing attribute under NOT. A missing attribute makes the whole filter false; a relation that is denied whole has a false filter beside. Nothing found.',
      ),
      file(
        'policy/role.ts',
        'grants and deny rules of roles; row filters of the policy, bound',
        'Looked for a grant that becomes wider by a fault: a filter that does not bind drops the grant and refuses the policy; a deny rule without columns denies all; several for one relation are joined. Nothing found. Row filters: **found**: predicates are shared by relations with the same columns, and the key had no `stored` type and no labels, so that the filter of a text column was taken for an enum of the same name. The verifier refused such plans (E5000); nothing left. Mended, with a test in `test/policy/snapshot.test.ts`.',
      ),
      file(
        'policy/table-attributes.ts',
        'attributes from entities: what is read for which subject',
        'Looked for an attribute that a filter names and that is not read, one read with the values of another subject, a circle, an attribute that is stated twice, and types whose text has two readings. What is not read is missing, and then the filter is false; the access is of one subject, and no caller gets it; `date` and `timestamptz` are refused as types of attributes. A list of numeric values for an `int4` is accepted, and a value with a fraction refuses the query. Nothing found.',
      ),
      file(
        'policy/compile-snapshot.ts',
        'a policy as a whole; subjects and their attributes (read before: looked for a value that is guessed from another form, and prototype names as attributes. Maps throughout; what is not a scalar, list or `{any: true}` is a problem of the policy. Nothing found.)',
        'Looked for a label without a mask (it denies), a kind of mask by a prototype name, a version that two policies share, and a part that is used before it was checked: problems are thrown before the snapshot is made. An attribute that is read from an entity cannot be stated by a subject or a rule of the exchange as well. Nothing found.',
      ),
    ],
  },
  {
    title: 'One request, one caller',
    why: 'Rights, plan, values and answer must be of the same caller; caches are where they could part.',
    files: [
      file(
        'src/ask/request/call.ts',
        'what a call claims',
        'Looked for an address or a purpose that a header could say: both are the surface’s, from the socket and from a checked field. Nothing found.',
      ),
      file(
        'src/ask/request/caller.ts',
        'one model for identity and access',
        'Looked for a moment between model and access at which another policy is served. One frozen model is read once, and the caller keeps it. Looked for rights used after their end: `until` also ends where values of attributes end. Nothing found.',
      ),
      file(
        'src/ask/request/identify.ts',
        'identity and access under one model; accounts and certificates of sessions',
        'Looked for a moment between model and access at which another policy is served. One frozen model is read once, and the caller keeps it. Looked for a session that outlives a changed password or rule: it is compared at each question. Looked for a way past the reading of attributes: what cannot wait for it gets no caller. Nothing found.',
      ),
      file(
        'src/ask/data/table-attributes.ts',
        'values of attributes from entities, and how long they are used',
        '**Found**: rights lasted `max_age` from the request and not from the reading whose values it used again, so that a statement parsed late ran with values up to a second too old; rows of a standby could be older than the values, which showed a new member what had left the team before; errors named the entity that is read; nothing limited the bytes of values, nor those of all that are kept; who needed equal values got the error of a reading that somebody else had begun, under the limits of that other. All are mended, with tests in `test/ask/table-attributes.test.ts` and `test/service/operations/standby-attributes.test.ts`. Tried without finding: another subject’s, policy’s or catalog’s values by the key, and a policy that changes while values are read (E2003).',
      ),
      file(
        'src/ask/request/respond.ts',
        'the order of every request',
        'Looked for an answer before its decision is on record and for rights taken before a wait: `inTurn` looks at them again. Attributes are read after the rate limit and before the decision is recorded; a policy that changes or a token that is revoked meanwhile ends the query when it begins (E2003). Nothing found.',
      ),
      file(
        'src/ask/request/session.ts',
        'logins and renewals',
        'A renewed token must have the same tenant and chain, revoked or not. Looked for rows behind `readsNoRows`: logins, renewals and commands of a session answer none. Nothing found.',
      ),
      file(
        'src/ask/data/planning.ts',
        'which plan is reused',
        'Read for parts that the key lacks: catalog, signature, world, parameter types, rollups. A prepared plan is compared by catalog and signature. Nothing found.',
      ),
      file(
        'src/ask/data/plan-cache.ts',
        'plans by rights and text',
        'Looked for two keys that read alike: rights begin with hashes without blanks, and shapes and texts have a letter before them. Nothing found.',
      ),
      file(
        'src/ask/data/ask.ts',
        'a question from plan to answer',
        'Looked for rows before their record, a plan of another caller, a kept answer that mixes two. Sinks wait for the record, decoders wait before they send; caller and plan go together from `respond` to the engine; a kept answer is not looked for under a snapshot or a row limit. **Found** beside it: `explain access` ran its look at a row as the chain that is supposed, whose quotas it used up. It is the administrator’s own request now. Standbys: looked for an answer kept under a newer epoch, which the primary gives. A block began on a standby older than the attributes that were read; it does not now.',
      ),
      file(
        'src/ask/data/answer-cache.ts',
        'answers that are given again, and their keys',
        'Each part of the key is hashed with its length: versions, signature, connector, SQL, forms, values, settings; values of attributes are among the values. Looked for an answer of an older epoch or policy: both are compared, and a new model clears all. The epoch is read before the answer, so that a change between the two makes the answer older, never newer. Nothing found.',
      ),
      file(
        'src/ask/data/runtime/slot-values.ts',
        'values of a statement, each in its place; keys of hash masks',
        'Values are given slot by slot in the order of `emit`, an attribute by the index of its subject, and what is missing is an error. Keys: HKDF by tenant and domain, HMAC pads of 64 bytes as in RFC 2104. Nothing found.',
      ),
      file(
        'src/ask/data/runtime/derived-attributes.ts',
        'a derived attribute with all passages that it rests on, or not at all',
        'A value counts where as many passages are seen as it rests on; keys are pairs as JSON, so that no two names make a third. Nothing found.',
      ),
      file(
        'src/ask/data/runtime/retrieve.ts',
        'a redacted key of a passage joins nothing',
        'Looked for a passage that is sent away without leave, and for a redacted key that joins: decoders and rerankers are judged by `requireModelAccess` in `ask.ts` before; keys are looked at after the last cut and before any operator. Nothing found.',
      ),
      file(
        'src/ask/routes/route.ts',
        'known shapes, their values fixed for one caller',
        '**Found**: `isOf` compared model and rights, not the chain, though values of attributes are fixed in a route; that a prepared statement never leaves its session was all that kept it to one person. It compares tenant and chain now (`test/ask/plan-cache.test.ts`). Routes are found by tenant, chain, signature, claimed values and purpose; another model begins anew.',
      ),
      file(
        'src/ask/routes/text-shape.ts',
        'texts of one shape told by their bytes',
        'Tried prefixes (`E`, `U&`, `b`, `x`), comments, continued strings, exponents, digits in names, numbers with letters behind them: each time the two scans differ on the first text, and there is no shape. Nothing found.',
      ),
      file(
        'src/ask/routes/fast-question.ts',
        'one question by a route',
        'Looked for rows of one run told to another: a run that was let go serves nobody else, and nothing is told before the record. Standbys: server and session are chosen in the turn in which the run is sent. Nothing found.',
      ),
      file(
        'src/ask/routes/questions.ts',
        'which question takes a route',
        'Looked for a route used after rights ended: identity, model, origin and time are compared with each question; a revoked token ends its sessions and is refused by `callerIfAllowed`. Callers with attributes from entities have no route. Nothing found.',
      ),
    ],
  },
  {
    title: 'The plan is proved',
    why: 'What parses, binds and governs a question is not trusted: `mint` proves the finished plan from the catalog and the access of its caller, or there is none (`test/proof/oracle/verifier.test.ts` has a fault of plan-making a row).',
    files: [
      file(
        'compiler/src/access/access.ts',
        'the grants of a relation, and filters of a chain',
        'Looked for a grant without row output among those that show rows, and for “covers all rows” that is said too easily: it is judged by text, so that a doubt says no. Each subject of a chain must meet a filter; no subject is FALSE, and a missing attribute is FALSE for all of it. Nothing found.',
      ),
      file(
        'compiler/src/govern/governed-plan.ts',
        'the only way to a plan that runs',
        '**Found**: `mint` was a plain function that any file of the compiler could call without a proof, and wrote down signature and versions that its caller named. It proves the plan itself, takes them from what it proves against, and freezes all of it.',
      ),
      file(
        'compiler/src/govern/verify/verify.ts',
        'scope, slots, joins, recursion',
        'Looked for leaves, values and queries that are passed over: each `switch` names every kind. **Found**: it believed filter, columns and minimum of a scan; `verify/scans.ts` works them out.',
      ),
      file(
        'compiler/src/govern/verify/scans.ts',
        'relation, row filter, masks and minimum of each scan',
        'Looked for columns, predicates and stores that are passed over: queries and columns of other sources in a scan (`verify.ts` refuses them), forged relations, columns of one physical name, grants of somebody else. **Found**: derived attributes could be joined to passages of another facet; they must be of their own now. What it refuses is in the table of `verifier.test.ts`.',
      ),
      file(
        'compiler/src/govern/verify/barrier.ts',
        'nothing fails on a hidden row',
        '**Found**: predicates beside a row filter (`pushed`) were never looked at, though they run on hidden rows; one that can fail is refused now. A source that it does not know counts as sound: `verify.ts` has refused those before. Read again after changes: parts of HAVING without an aggregate, and `lower` and `upper` of a `varchar(n)`, whose length `verify.ts` compares with the catalog. Nothing found. Since then, without another reading: its walks are those of `plan/walk.ts`, and its caches are one class.',
      ),
      file(
        'compiler/src/govern/verify/proofs.ts',
        'what cannot fail',
        'Looked for operators, casts and texts that are total for one type and named for all. Each is bound to its types; what is computed of literals is bounded by size. That a bound of a text or number is small enough is not looked at (`isBounded`, `isSized`): the form alone, which `bounds.ts` makes. **Found** later: literals below two million counted as small, and their sums and products as if they were below 100,000, so that a plan with a number beyond int8 was proved; no plan that is made has one. Lengths of `left`, `right` and `substring` cannot be negative. Since then, without another reading: `ProofLiterals` is the one way to rely on a literal.',
      ),
      file(
        'compiler/src/govern/verify/minimum.ts',
        'groups that are too small',
        '**Found**: it looked for a count compared with a parameter, and never at its value: 1 would have passed. The value is compared with the minimum now. Not proved: the percentage of a `dominance` rule, which `verify/scans.ts` holds to the policy in the scan alone.',
      ),
      file(
        'compiler/src/govern/verify/rollup.ts',
        'a rollup stands for its entity',
        '**Found**: it ran after the plan was minted, for plans of one door only. It is part of `mint`.',
      ),
      file(
        'compiler/src/govern/mask.ts',
        'the mask and filter that policy asks',
        'Looked for a type that no mask fits, a label without a mask, a mask that computes on rows no grant covers: redacted, denied, and plain in these. The access says `denied` apart: `verify/scans.ts` looks at it. Nothing found.',
      ),
      file(
        'compiler/src/govern/folded-filters.ts',
        'many filters as few',
        'Looked for ranges that join though a value lies between, NULL in lists, zones: bounds are compared as whole numbers or texts of one length, and what cannot be is left alone. Nothing found.',
      ),
      file(
        'compiler/src/govern/facet-version.ts',
        'the redaction version that is due',
        'A label is readable only where the grants together show every passage with it; without a fitting version there are none. Nothing found.',
      ),
      file(
        'compiler/src/govern/scan-access.ts',
        'the minimum of several grants; keys that groups are counted by',
        'The strictest of all rules; two units are an error. Rows without a key are left out. The rewriting of blocks (`govern/minimum.ts`) is not trusted: `verify/minimum.ts` proves it. Nothing found.',
      ),
      file(
        'compiler/src/govern/groups.ts',
        'which questions may count rows in groups, and in which of their blocks',
        'The verifier proves the grants, the minimum and each block; that a running total, or an aggregate named by its metric, may use them is believed from here. Looked for expressions that can fail on a group that is too small: conditions on group keys must be harmless, and ten queries that divide, cast or overflow in HAVING, the select list, ORDER BY, a window or a query around it fail on visible groups alone. Nothing found.',
      ),
      file(
        'compiler/src/govern/slots.ts',
        'values of policy as parameters',
        'Looked for a slot that is shared by policy and asker: policy never shares one. Nothing found.',
      ),
      file(
        'compiler/src/govern/template.ts',
        'other literals in a proved plan',
        '**Found**: nothing but the order of slots kept a text from changing a value of a row filter. It is refused where a template is made.',
      ),
      file(
        'compiler/src/plan/plan.ts',
        'the plan’s nodes',
        'Closed unions without a node for text. Nothing found.',
      ),
      file(
        'compiler/src/plan/walk.ts',
        'the walks that the proofs go by',
        'Looked for kinds and fields that a walk leaves out. Every kind is named, and `test/proof/oracle/walks.test.ts` compares the walks with all fields of plans. Nothing found.',
      ),
      file(
        'compiler/src/plan/nodes.ts',
        'nodes that masks are made of',
        'Each node is frozen, and copies the list that it is given. Nothing found.',
      ),
      file(
        'compiler/src/plan/fingerprint.ts',
        'whether two values are the same',
        'It leaves out an aggregate’s metric and a function’s table of structural arguments, which no filter or mask has. A cache by object would be wrong for an object that changes: plans are frozen.',
      ),
    ],
  },
  {
    title: 'The text is the plan',
    why: 'The database runs a text: it must say what was proved.',
    files: [
      file(
        'compiler/src/emit/emit.ts',
        'plan to text: queries, joins, scans',
        'Texts are kept by query, as statements are: see `governed.ts`. Looked for conditions that are left out, precedence and names: conjuncts are joined by AND, what has OR in it stands in brackets, and names go through `identifier`. Nothing found.',
      ),
      file(
        'compiler/src/emit/expression.ts',
        'values',
        'Looked for a name of a function, operator or collation that comes from a text, and for nodes that bind otherwise than they should. Names come from definitions, and operators stand in brackets. Nothing found.',
      ),
      file(
        'compiler/src/emit/rows.ts',
        'functions that make rows',
        'Looked for a name or type that comes from a text: functions are of definitions, types of the closed list, columns and aliases are numbered. Nothing found.',
      ),
      file(
        'compiler/src/emit/writer.ts',
        'parameters in their order, and which value each has',
        'A slot has the number of its first use, and `slotsUsed` gives them in that order. Every kind of slot is named; a client’s value that is missing is an error. Nothing found.',
      ),
      file(
        'compiler/src/text/sql-text.ts',
        'names and texts, quoted',
        'Quotes are doubled, NUL refused, array elements escaped. Nothing found.',
      ),
    ],
  },
  {
    title: 'Exactly that text runs, and its rows go to who asked',
    why: 'One session serves many callers: an answer must be of its own question, and the role without privileges.',
    files: [
      file(
        'src/engine/governed.ts',
        'the governed door',
        'Statements are kept by query, not by plan: two plans share one only through `withValues`, which changes values alone. A forged plan is refused by its private field. Nothing found.',
      ),
      file(
        'src/engine/runner.ts',
        'a session for each statement',
        'A session that is not known to be governed is destroyed. Standbys: looked for a session given back to another server’s pool, and a standby that fell behind while a session was waited for: it is asked again. Nothing found.',
      ),
      file(
        'src/engine/execution.ts',
        'one run, alone or shared',
        'Looked for rows of a setting taken for the answer’s, and rows before a wrong description: both are dropped. Standbys: looked for rows sent twice: it runs on the primary only where none were sent. Nothing found.',
      ),
      file(
        'src/engine/short.ts',
        'runs on shared sessions',
        'Answers come in the order of jobs, and each job is one object. An abandoned run is used by nobody again. Standbys: looked for a session of one server used for another that was chosen: both are set by one call. Nothing found.',
      ),
      file(
        'src/engine/snapshot.ts',
        'several statements of one subject',
        'Looked for a statement that inherits what another left: each runs behind a savepoint, in a session that belongs to one subject, and whatever is not in the expected state ends the session. Standbys: a block stays on the server on which it began. Nothing found.',
      ),
      file(
        'src/engine/upstream-session.ts',
        'jobs and answers in order; prepared statements of a session',
        'Looked for an answer that goes to the next job: a job ends at ReadyForQuery, and a stream that cannot be followed ends the session. Prepared statements go by their text: two statements of one text are one. Nothing found.',
      ),
      file(
        'src/engine/settings.ts',
        'settings of every governed session, and of one statement',
        'Read-only, a fixed search path and `standard_conforming_strings`. Settings of a statement: names come from a closed set, values are parameters or quoted with quotes doubled, which is whole under `standard_conforming_strings`. Nothing found.',
      ),
      file(
        'src/engine/postgres/role.ts',
        'the unprivileged role',
        'Looked for a way to more rights that is passed over: superuser, BYPASSRLS, REPLICATION and files of the server, also of roles that it can become. Owning or creating objects is a warning, not a fault. Nothing found.',
      ),
      file(
        'src/engine/protocol/encoder.ts',
        'messages to the database',
        'A message is whole or not there; NUL in a text is refused. Nothing found.',
      ),
      file(
        'src/engine/protocol/splitter.ts',
        'messages of the database',
        'Looked for bytes of one message taken for another’s: lengths below 4 and above 1 GB end the session; memory that is not filled yet is not shown. The beginning that is kept of a large message is right as long as `large` is at least 64 KiB, which the constructor’s one caller gives. Nothing found.',
      ),
    ],
  },
  {
    title: 'Errors tell no value',
    why: 'The words of a database quote rows.',
    files: [
      file(
        'src/engine/upstream-error.ts',
        'SQLSTATE and our own words',
        'Looked for words of the upstream that reach a caller: none do, but for a parameter’s number. 42501 of a function of the model’s tables is told as `sourceDenied`, without a name that the caller did not write. The fields of an error: a body that ends early gives fewer. What Citus refuses is told in words of ours, from a closed list. Nothing found.',
      ),
      file(
        'src/ask/request/public-error.ts',
        'everything of ours is a request id',
        'Only a QueryError is told as it is. Nothing found.',
      ),
    ],
  },
];

/** Files that the base imports at run time and that are argued not to matter, by the beginnings of their paths. */
const ARGUED: ReadonlyMap<string, string> = new Map([
  ['compiler/src/errors/', 'errors: codes, words, positions; what is thrown ends a request'],
  ['compiler/src/index.ts', 'names of the package; it has no code'],
  [
    'policy/identity.ts',
    'copies claims that verification has read, and refuses what is no such copy: a check that comes beside',
  ],
  ['policy/index.ts', 'names of the room; it has no code'],
  ['audit/index.ts', 'names of the audit log, which stands by itself'],
  ['src/engine/index.ts', 'names of the room; it has no code'],
  [
    'src/ask/data/runtime/',
    'orders, joins and cuts rows of governed plans of the same caller; `test/proof/retrieval` holds it to a search by brute force',
  ],
  [
    'src/ask/data/',
    'limits, times, costs and places of errors: they stop or describe an answer, and add no row to it; `standby-choice.ts` lets a standby answer whose rows are not older than rights (`test/service/operations/standby-attributes.test.ts`)',
  ],
  ['src/ask/request/', 'records, limits and payments of requests: they refuse or write, and answer nothing'],
  ['src/ask/parsing/', 'a syntax tree, whose plan is proved'],
  [
    'compiler/src/bind/',
    'a template asks it how a literal was written; what it says is tested against a fresh compilation (`test/language/compiler/shape-plan.test.ts`)',
  ],
  ['compiler/src/access/groups-only.ts', 'words of a refusal'],
  ['compiler/src/catalog/', 'reads frozen data of the manifest'],
  [
    'compiler/src/functions/',
    'definitions of functions: a wrong one fails in the database, and the verifier has its own list of what cannot fail',
  ],
  [
    'compiler/src/govern/bounds.ts',
    'rewrites a block so that sums cannot overflow; the verifier proves the outcome',
  ],
  ['compiler/src/govern/barrier/', 'puts guards up; the verifier proves the outcome'],
  [
    'compiler/src/govern/column-names.ts',
    'names of columns beside others: whatever its name, a column of a scan is a declared one as policy shows it',
  ],
  ['compiler/src/limits.ts', 'numbers'],
  [
    'compiler/src/plan/join-rule.ts',
    'joins of the caller: which question may be asked, over rows that are governed already',
  ],
  ['compiler/src/plan/keys.ts', 'forms of conditions: equalities, sealed keys, reads by a whole key'],
  [
    'compiler/src/plan/properties.ts',
    'names of collations, lists of relations, joins that repeat rows or leave them out',
  ],
  ['compiler/src/types/', 'names of types'],
  ['policy/attributes.ts', 'texts of attributes, and their types: a wrong one fails in the database'],
  [
    'policy/conditions.ts',
    'a constant: circumstances in which no condition holds. Which approvals a request has is found in `policy/approvals.ts`, behind an interface and outside of the base: a fault in it shows what a grant with `approval` grants, and no more',
  ],
  [
    'policy/compile-conditions.ts',
    'reads conditions of a policy, and roles that may approve; held to the document by `test/policy/conditions.test.ts`',
  ],
  ['policy/exchange/', 'reads rules and claims of the exchange, whose tokens are verified like any others'],
  ['policy/groups.ts', 'reads minima of a policy; held to the document by `test/policy/snapshot.test.ts`'],
  ['policy/lazy-map.ts', 'a Map that is filled when read'],
  ['policy/limit', 'limits and quotas'],
  ['policy/names.ts', 'names of a policy, checked'],
  ['policy/problems.ts', 'problems of a policy'],
  ['policy/service-account.ts', 'reads accounts of a policy'],
  ['policy/subjects.ts', 'subjects of a chain'],
  ['policy/tokens/token-fault.ts', 'words of a refusal'],
  ['src/base/', 'threads, turns and stacks: nothing of data'],
  ['src/engine/answer-memory.ts', 'memory of answers'],
  [
    'src/engine/servers.ts',
    'primary or standby; a standby is of the same system and timeline, and each of its sessions is inspected as any other',
  ],
  [
    'src/engine/standby-reads.ts',
    'from when data of a standby must be, and after which of its errors the primary is asked',
  ],
  ['src/engine/lanes.ts', 'which statements are short'],
  ['src/engine/fair-share.ts', 'how many sessions a subject or its transactions may hold'],
  ['src/engine/statement.ts', 'types of statements and values; words for messages'],
  ['src/ask/routes/routed-question.ts', 'how long a query may take'],
  ['src/engine/out-of-service.ts', 'why a statement made no sense, by tables that the caller named'],
  ['src/engine/postgres/foreign-servers.ts', 'a list of servers'],
  ['src/engine/postgres/server-kind.ts', 'the kind of a server, and words for what it refuses'],
  ['src/engine/protocol/growing-bytes.ts', 'a buffer that grows'],
  ['src/engine/protocol/backend-messages.ts', 'rows and types of columns, as they come'],
  ['src/engine/spool/', 'rows of one answer on disk, encrypted with a key of its own'],
  ['src/engine/fair-scheduler.ts', 'order of streams'],
  ['src/engine/upstream-report.ts', 'words for the operator’s log'],
]);

const FILES: readonly TrustedFile[] = PARTS.flatMap((part) => part.files);

function textOf(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function linesOf(path: string): number {
  return textOf(path).split('\n').length - 1;
}

/** Lines that are neither blank nor comment. */
function codeLinesOf(path: string): number {
  const code = textOf(path).replace(/\/\*[\s\S]*?\*\//g, '');
  return code.split('\n').filter((line) => !/^\s*(?:\/\/.*)?$/.test(line)).length;
}

const IMPORT = /^(?:import|export)\s+(?!type\b)([^;]*?)\s*from\s*'([^']+)';|\bimport\('([^']+)'\)/gm;

/** Files of ours that `path` imports at run time: a list of types alone is none. */
function importsOf(path: string): readonly string[] {
  return [...textOf(path).matchAll(IMPORT)].flatMap(([, names = '', from, lazily]) => {
    const specifier = from ?? lazily ?? '';
    const listed = /^\{([\s\S]*)\}$/.exec(names.trim())?.[1];
    const isOfTypes = listed?.split(',').every((name) => /^\s*(?:type\s|$)/.test(name)) ?? false;
    if (isOfTypes) return [];
    if (specifier === 'osl-compiler') return ['compiler/src/index.ts'];
    if (!specifier.startsWith('.')) return [];
    return [normalize(join(dirname(path), specifier)).replace(/\.js$/, '.ts')];
  });
}

/** Faults of the table: files that are gone, and imports that are neither in the base nor argued. */
export function faultsOfBase(): readonly string[] {
  const base = new Set(FILES.map((f) => f.file));
  const gone = [...base].filter((path) => !existsSync(join(ROOT, path))).map((path) => `${path} is gone`);
  const loose = FILES.filter(({ file: path }) => existsSync(join(ROOT, path))).flatMap(({ file: from }) =>
    importsOf(from).flatMap((to) => {
      if (base.has(to)) return [];
      const argument = [...ARGUED.keys()].find((start) => to.startsWith(start));
      return argument === undefined ? [`${from} imports ${to}`] : [];
    }),
  );
  return [...gone, ...loose];
}

/** Lines of the whole base. */
export function linesOfBase(): number {
  return FILES.reduce((sum, f) => sum + linesOf(f.file), 0);
}

export function trustedBasePage(): string {
  const count = (n: number): string => n.toLocaleString('en');
  const sum = (files: readonly TrustedFile[], of: (path: string) => number): string =>
    count(files.reduce((total, f) => total + of(f.file), 0));
  const unread = FILES.filter((f) => f.read === null);
  const part = ({ title, why, files }: Part): string =>
    [
      `## ${title}`,
      '',
      `${why} ${sum(files, linesOf)} lines, ${sum(files, codeLinesOf)} of them code.`,
      '',
      '| file | lines | code | trusted for | read by somebody who had not written it |',
      '| --- | ---: | ---: | --- | --- |',
      ...files.map(
        (f) =>
          `| \`${f.file}\` | ${count(linesOf(f.file))} | ${count(codeLinesOf(f.file))} | ${f.why} | ${f.read ?? 'not yet'} |`,
      ),
      '',
    ].join('\n');
  return `${INTRODUCTION}
**${count(FILES.length)} files, ${sum(FILES, linesOf)} lines, ${sum(FILES, codeLinesOf)} of them code.** The goal was 4,000 lines. ${count(unread.length)} files (${sum(unread, linesOf)} lines) have not been read line by line by somebody who had not written them.

${PARTS.map(part).join('\n')}
${ENDING}
## Imported, and argued not to matter

A trusted file may import at run time what is in the base, and these:

${[...ARGUED].map(([start, why]) => `- \`${start}\`: ${why}.`).join('\n')}
`;
}

const INTRODUCTION = `# Trusted base

<!-- Made by test/docs/trusted-base.ts: OSL_WRITE_DOCS=1 node dist/test/docs/trusted-base.test.js -->

**The sentence**: no answer and no error that leaves the gateway for a caller depends on a value that policy hides from it: a row outside of the row filters of its grants, or a cell that is masked, denied or not granted in that row. Answers are rows over REST, MCP and the wire, counts, plans of EXPLAIN and catalogs; errors are codes, words and places.

**Not part of it**: timing; the size of the database; what the mask itself says (a hash is equal for equal values, a year is a year); figures over groups that are large enough; the operator, who reads the log and the database; a process that runs other code than this, its libraries (Node, jose, lru-cache, pg’s grammar) and Postgres itself, which is trusted to run what it is sent under a role without privileges. [The threat model](threat-model.md) and [conformance](conformance.md) say what is claimed beside.

**This page** lists the files that must be right for the sentence to hold. A test fails if one imports at run time a file of ours that is neither here nor argued below, if the page is stale, or if the base grows. What parses and binds a question, applies policy to it, chooses rollups and orders joins is not here: the plan that comes out is proved before it can run.
`;

const ENDING = `## What would bring it down

- The proofs that nothing fails on a hidden row (\`verify/barrier.ts\`, \`verify/proofs.ts\`) are a tenth of it. Evaluating every condition of a caller behind a fence would make them unnecessary, and indexes useless.
- \`src/ask/routes\` is a second path for a known shape. What it decides could move behind one lookup that returns a minted plan with its values.
- \`src/ask/data/ask.ts\` and \`questions.ts\` hold limits, records and delivery beside what binds caller and plan: split, about a third of them is trusted.
- The policy’s compiler could be proved like a plan: a small check of a snapshot against its document.
- Groups: \`groups.ts\` is trusted for questions that count rows in groups alone; a verifier of running totals, and of metrics by their text, would take it out.
`;
