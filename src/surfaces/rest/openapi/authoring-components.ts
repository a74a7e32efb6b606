import { OBJECTS_REQUEST, SUGGEST_REQUEST, VALIDATE_REQUEST } from '../bodies/authoring.js';
import { count, flag, type JsonShape, list, object, oneOf, text, textOrNull } from '../shape.js';

const VERSIONS = object(
  { manifest: text(), policy: text() },
  'Versions of the manifest and policy on which the answer is based.',
);
const SERVED_VERSIONS = object(
  { manifest: text(), policy: text() },
  'Versions of the manifest and policy being served now.',
);
const REQUEST_ID = text('ID of this request, also in the audit log.');

const CANDIDATE = object({
  id: text('`connector.schema.table`'),
  connector: text(),
  schema: text(),
  table: text(),
  kind: oneOf('table', 'view', 'materialized_view', 'foreign_table'),
  comment: textOrNull(),
  proposal: {
    ...oneOf('entity', 'bridge', 'association'),
    description:
      '`bridge`: a link table for two tables, whose other columns are filled in by the database. `association`: any other link table.',
  },
  name: text('Proposed name, not used in the manifest yet.'),
  columns: list(
    object({
      name: text(),
      upstream_type: text(),
      type: textOrNull(
        'Type of the column in the model; null if there is no such type, so that the column cannot be exposed.',
      ),
      declared: textOrNull(
        'Value of `type` in a manifest, such as `varchar(20)`; null if the column cannot be exposed.',
      ),
      stored: textOrNull('Value of `stored` in a manifest if the type is read as text; otherwise null.'),
      labels: {
        type: ['array', 'null'],
        items: text(),
        description: 'Labels of an enum type, in their order; null for other types.',
      },
      nullable: flag(),
      readable: flag('True if the database role that runs queries may read the column.'),
      comment: textOrNull(),
    }),
  ),
  key: list(
    text(),
    'Columns of the primary key, or of a unique key without NULLs; empty if the database declares neither.',
  ),
  unique_keys: list(list(text())),
  foreign_keys: list(
    object({
      name: text(),
      comment: textOrNull('Comment on the constraint in the database.'),
      columns: list(text()),
      references: object({
        schema: text(),
        table: text(),
        columns: list(text()),
        entity: textOrNull(
          'Entity whose source is the referenced table; null if the manifest has no such entity.',
        ),
      }),
    }),
  ),
  row_estimate: {
    type: ['integer', 'null'],
    description:
      'Number of rows estimated by the database’s planner; null for views and for tables that were never analyzed.',
  },
  confidence: { type: 'number', minimum: 0, maximum: 1 },
  evidence: list(text()),
});

const CANDIDATES = object({
  request_id: REQUEST_ID,
  candidates: list(CANDIDATE),
  unread: list(
    object({ connector: text(), reason: text() }),
    'Connectors whose database could not be read, with the reason.',
  ),
  truncated: flag('True if a database has more relations than the gateway reads.'),
});

const POSITION = object({ line: count(), column: count() });

const FINDING = object({
  code: text('Code of the finding: `M…` for the manifest, `P…` for the policy.'),
  severity: oneOf('error', 'warning'),
  document: oneOf('manifest', 'policy'),
  path: text('JSON Pointer (RFC 6901) into the document.'),
  range: {
    anyOf: [
      { type: 'null' },
      object(
        { start: POSITION, end: POSITION },
        'Range in the text that was sent. Lines and columns start at 1; the end is exclusive.',
      ),
    ],
  },
  message: text(),
  hint: textOrNull(),
});

const SUGGESTION = object({
  request_id: REQUEST_ID,
  fragment: object({ yaml: text(), json: { type: 'object' } }),
  diagnostics: list(FINDING, 'Errors in the draft; empty if it compiles.'),
  notes: list(text(), 'Notes for the author: facts to know and decisions to make.'),
  versions: VERSIONS,
});

const ROLE_ACCESS = object({
  access: oneOf('aggregates', 'masked', 'partly_masked', 'clear', 'served'),
  reads: text(
    'Data that the role reads: a table column, the text of a facet, or the definition of a metric.',
  ),
});
const VISIBILITY = { anyOf: [{ type: 'null' }, ROLE_ACCESS] } as const;

const ROLE_CHANGE = object({
  role: text(),
  subjects: object(
    { count: count(), first: list(text()) },
    'Number of subjects with the role in their ceiling, and the first of them.',
  ),
  changes: list(
    object({
      object: text(),
      effect: oneOf('gains', 'loses', 'differs'),
      before: VISIBILITY,
      after: VISIBILITY,
    }),
  ),
});

const DIFFERENCE = object({
  version: text('Version of the manifest with the change applied.'),
  changes: list(
    object({
      change: oneOf('added', 'removed', 'changed'),
      kind: text('Kind of the part, such as `entity`, `column` or `metric`.'),
      name: text(),
      what: list(text()),
    }),
  ),
  access: list(ROLE_CHANGE, 'Changes in access under the current policy, by role.'),
  needs_restart: flag('True if connectors change, so that a restart is needed.'),
});

const JUDGEMENT = object({
  request_id: REQUEST_ID,
  ok: flag('True if the manifest with the change could be served.'),
  diagnostics: list(FINDING),
  diff: { anyOf: [{ type: 'null' }, DIFFERENCE] },
  versions: VERSIONS,
});

export const AUTHORING: readonly (readonly [string, JsonShape])[] = [
  ['Candidates', CANDIDATES],
  ['SuggestRequest', SUGGEST_REQUEST],
  ['Suggestion', SUGGESTION],
  ['ValidateRequest', VALIDATE_REQUEST],
  ['Judgement', JUDGEMENT],
  ['Finding', FINDING],
  ['Difference', DIFFERENCE],
  ['RoleAccess', ROLE_ACCESS],
];

const AUTHOR = object({ subject: text(), chain: list(text()) });
const NAME = text('Path in a manifest: `section.name`, such as `entities.order`.');

const VERSION_SUMMARY = object({
  id: text('SHA-256 of the version’s file, in hexadecimal.'),
  number: count('Sequence number, starting at 1.'),
  parent: textOrNull('ID of the previous version; null for the first.'),
  at: text('Time of publication, RFC 3339 in UTC.'),
  author: AUTHOR,
  request_id: text(),
  action: oneOf('publish', 'deprecate', 'withdraw', 'rollback'),
  draft: textOrNull('ID of the published draft; null if no draft was published.'),
  restores: {
    type: ['integer', 'null'],
    description:
      'Number of the version that a rollback restores; 0 for the manifest file alone, null for other actions.',
  },
  base: text('Version of the manifest file, without published objects.'),
  manifest: text('Version of the manifest that resulted from the change.'),
  policy: text(),
});

const DRAFT = object({
  id: text('ID, derived from the text: drafts with equal texts have the same ID.'),
  at: text(),
  author: AUTHOR,
  state: oneOf('draft', 'validated', 'published'),
  validated: {
    anyOf: [{ type: 'null' }, object({ at: text(), by: text(), manifest: text(), policy: text() })],
  },
  published_as: textOrNull(
    'ID of the version published from the draft; null if the draft was not published.',
  ),
});

const NOTES = list(text(), 'Notes for the author: added objects that no role has a grant on.');

const PUBLICATION = {
  oneOf: [
    object({
      request_id: REQUEST_ID,
      state: oneOf('published'),
      changed: flag('False if everything was already published, so that no new version was created.'),
      version: { anyOf: [{ type: 'null' }, VERSION_SUMMARY] },
      diff: DIFFERENCE,
      notes: NOTES,
      versions: SERVED_VERSIONS,
    }),
    object({
      request_id: REQUEST_ID,
      state: oneOf('draft', 'validated', 'published', 'discarded'),
      draft: DRAFT,
    }),
  ],
} as const;

const PUBLICATIONS = object({
  request_id: REQUEST_ID,
  version: text('Version of the manifest being served; also the ETag.'),
  base: text('Version of the manifest file, without published objects.'),
  objects: list(
    object({
      name: NAME,
      state: oneOf('published', 'deprecated'),
      over_file: flag('True if the object replaces one of the same name in the manifest file.'),
    }),
  ),
  history: list(VERSION_SUMMARY, 'Published versions, newest first; at most 200.'),
  drafts: list(DRAFT),
  truncated: flag('True if there are older versions than those listed.'),
});

const PUBLISHED = {
  oneOf: [
    object({ request_id: REQUEST_ID, kind: oneOf('version'), version: VERSION_SUMMARY }),
    object({ request_id: REQUEST_ID, kind: oneOf('draft'), draft: DRAFT }),
  ],
  description:
    'A version or a draft. Members not declared here: a version’s `objects`, `changes` and `access`, a draft’s `text`.',
} as const;

export const PUBLISHING: readonly (readonly [string, JsonShape])[] = [
  ['ObjectsRequest', OBJECTS_REQUEST],
  ['Publication', PUBLICATION],
  ['Publications', PUBLICATIONS],
  ['Published', PUBLISHED],
  ['VersionSummary', VERSION_SUMMARY],
  ['Draft', DRAFT],
  [
    'Unservable',
    object(
      { code: text(), detail: text(), 'diagnostics?': list(FINDING) },
      'An error, with the problems that prevent the manifest from being served if its code is E1002.',
    ),
  ],
];
