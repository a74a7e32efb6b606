import { OBJECTS_REQUEST, SUGGEST_REQUEST, VALIDATE_REQUEST } from '../bodies/authoring.js';
import { count, flag, type JsonShape, list, object, oneOf, text, textOrNull } from '../shape.js';

const VERSIONS = object({ manifest: text(), policy: text() }, 'What was served when this was judged.');
const REQUEST_ID = text('The call in the audit log.');

const CANDIDATE = object({
  id: text('`connector.schema.table`'),
  connector: text(),
  schema: text(),
  table: text(),
  kind: oneOf('table', 'view', 'materialized_view', 'foreign_table'),
  comment: textOrNull(),
  proposal: {
    ...oneOf('entity', 'bridge', 'association'),
    description: 'A bridge links two and says no more; an association says more of each link.',
  },
  name: text('Free in the manifest.'),
  columns: list(
    object({
      name: text(),
      upstream_type: text(),
      type: textOrNull('Null where the model has no such type.'),
      declared: textOrNull('`type` as a manifest spells it for this column: `varchar(20)`.'),
      stored: textOrNull('What a manifest says of a type that is read as text.'),
      labels: { type: ['array', 'null'], items: text(), description: 'Of an enum, in its order.' },
      nullable: flag(),
      readable: flag('The role that governed statements run as may read it.'),
      comment: textOrNull(),
    }),
  ),
  key: list(text(), 'Empty where none is declared.'),
  unique_keys: list(list(text())),
  foreign_keys: list(
    object({
      name: text(),
      comment: textOrNull("The constraint's."),
      columns: list(text()),
      references: object({
        schema: text(),
        table: text(),
        columns: list(text()),
        entity: textOrNull('The entity that rests on it.'),
      }),
    }),
  ),
  row_estimate: { type: ['integer', 'null'], description: "The planner's." },
  confidence: { type: 'number', minimum: 0, maximum: 1 },
  evidence: list(text()),
});

const CANDIDATES = object({
  request_id: REQUEST_ID,
  candidates: list(CANDIDATE),
  unread: list(object({ connector: text(), reason: text() }), 'Connectors that could not be read.'),
  truncated: flag('Some database has more relations than are read.'),
});

const POSITION = object({ line: count(), column: count() });

const FINDING = object({
  code: text('M… of a manifest, P… of a policy.'),
  severity: oneOf('error', 'warning'),
  document: oneOf('manifest', 'policy'),
  path: text('JSON Pointer.'),
  range: {
    anyOf: [
      { type: 'null' },
      object({ start: POSITION, end: POSITION }, 'Lines and columns from 1, half open.'),
    ],
  },
  message: text(),
  hint: textOrNull(),
});

const SUGGESTION = object({
  request_id: REQUEST_ID,
  fragment: object({ yaml: text(), json: { type: 'object' } }),
  diagnostics: list(FINDING, 'What stands against the draft as it is.'),
  notes: list(text(), 'What a person has to know or decide.'),
  versions: VERSIONS,
});

const VISIBILITY = {
  anyOf: [
    { type: 'null' },
    object({
      access: oneOf('aggregates', 'masked', 'partly_masked', 'clear', 'served'),
      reads: text('What that is upstream.'),
    }),
  ],
} as const;

const ROLE_CHANGE = object({
  role: text(),
  subjects: object({ count: count(), first: list(text()) }, 'Whose ceiling has the role.'),
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
  version: text('Of the manifest that would be served.'),
  changes: list(
    object({
      change: oneOf('added', 'removed', 'changed'),
      kind: text('`entity`, `column`, `metric`, …'),
      name: text(),
      what: list(text()),
    }),
  ),
  access: list(ROLE_CHANGE, 'Who gains or loses access under the policy of now.'),
  needs_restart: flag('Connectors change.'),
});

const JUDGEMENT = object({
  request_id: REQUEST_ID,
  ok: flag('It could be served.'),
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
];

const AUTHOR = object({ subject: text(), chain: list(text()) });
const NAME = text('`section.name`, as in a manifest.');

const VERSION_SUMMARY = object({
  id: text('SHA-256 of its file.'),
  number: count('From 1.'),
  parent: textOrNull('The version before it.'),
  at: text('RFC 3339.'),
  author: AUTHOR,
  request_id: text(),
  action: oneOf('publish', 'deprecate', 'withdraw', 'rollback'),
  draft: textOrNull('The draft that it was made of.'),
  restores: { type: ['integer', 'null'], description: 'Of a rollback: the number that it restores.' },
  base: text('Of the manifest file alone.'),
  manifest: text('Of the manifest that served with it.'),
  policy: text(),
});

const DRAFT = object({
  id: text('Of its text.'),
  at: text(),
  author: AUTHOR,
  state: oneOf('draft', 'validated', 'published'),
  validated: {
    anyOf: [{ type: 'null' }, object({ at: text(), by: text(), manifest: text(), policy: text() })],
  },
  published_as: textOrNull('The version that was made of it.'),
});

const NOTES = list(text(), 'What an author should know: objects that nobody has a grant on.');

const PUBLICATION = {
  oneOf: [
    object({
      request_id: REQUEST_ID,
      state: oneOf('published'),
      changed: flag('False where all of it was published already; then there is no new version.'),
      version: { anyOf: [{ type: 'null' }, VERSION_SUMMARY] },
      diff: DIFFERENCE,
      notes: NOTES,
      versions: VERSIONS,
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
  version: text('Of the manifest that is served; the ETag too.'),
  base: text('Of the manifest file alone.'),
  objects: list(
    object({
      name: NAME,
      state: oneOf('published', 'deprecated'),
      over_file: flag('It stands in the place of what the manifest file declares.'),
    }),
  ),
  history: list(VERSION_SUMMARY, 'Newest first, at most 200.'),
  drafts: list(DRAFT),
  truncated: flag('There are older versions.'),
});

const PUBLISHED = {
  oneOf: [
    object({ request_id: REQUEST_ID, kind: oneOf('version'), version: VERSION_SUMMARY }),
    object({ request_id: REQUEST_ID, kind: oneOf('draft'), draft: DRAFT }),
  ],
  description: 'A version with its `objects`, `changes` and `access`; or a draft with its `text`.',
} as const;

export const PUBLISHING: readonly (readonly [string, JsonShape])[] = [
  ['ObjectsRequest', OBJECTS_REQUEST],
  ['Publication', PUBLICATION],
  ['Publications', PUBLICATIONS],
  ['Published', PUBLISHED],
  [
    'Unservable',
    object({ code: text(), detail: text(), diagnostics: list(FINDING) }, 'A problem, with what is wrong.'),
  ],
];
