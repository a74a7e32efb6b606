import { SUGGEST_REQUEST, VALIDATE_REQUEST } from '../bodies/authoring.js';
import { count, flag, type JsonShape, list, object, oneOf, text, textOrNull } from '../shape.js';

export const VERSIONS = object({ manifest: text(), policy: text() }, 'What was served when this was judged.');
export const REQUEST_ID = text('The call in the audit log.');

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

export const FINDING = object({
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

const SIGHT = {
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
    object({ object: text(), effect: oneOf('gains', 'loses', 'differs'), before: SIGHT, after: SIGHT }),
  ),
});

export const DIFFERENCE = object({
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
