import { VISIBILITIES } from '../../../model/graph/index.js';
import { ACCESS_QUESTION, ACCESS_REQUEST } from '../bodies/access.js';
import { count, flag, type JsonShape, list, object, oneOf, orNull, text, textOrNull } from '../shape.js';

const SEES = {
  ...oneOf(...VISIBILITIES),
  description: 'In the clear, masked in some rows or in all, in figures over groups only, or not at all.',
};
const VERSIONS = object({ manifest: text(), policy: text() });
const REQUEST_ID = text('The call in the audit log.');
const NAMES = (description?: string) => list(text(), description);

const ROLE_REASON = object({
  role: text(),
  counts: flag(),
  declared: flag('Whether the policy has it.'),
  beyond: NAMES('Subjects of the chain whose ceiling does not have it.'),
});

const GRANT_REASON = object({
  rule: text('As the policy file has it: `roles.sales.grants[0]`.'),
  id: text('Opaque; the same that plans and callers are shown.'),
  role: text(),
  columns: {
    type: ['string', 'array'],
    items: { type: 'string' },
    description: 'A list, or `*`.',
  } as JsonShape,
  rows: textOrNull('Which rows; null for all.'),
  unmask: NAMES(),
  min_group_size: orNull(count()),
  conditions: orNull({
    type: 'object',
    description: 'When it counts: `starts`, `ends`, `when`, `for`, `break_glass`; null: always.',
  } as JsonShape),
  counts: flag('Whether it is part of the rights now.'),
  lacking: list(
    object({ subject: text(), attribute: text() }),
    'Attributes that its filter names and a subject of the chain lacks: it shows no row then.',
  ),
});

const DENY_REASON = object({
  rule: text(),
  role: text(),
  columns: orNull(NAMES('Null: all of it.')),
  held_by: NAMES('Subjects of the chain who can have the role.'),
});

const ROW_REASON = object({
  key: NAMES(),
  visible: flag('False too where there is no such row.'),
  shown_by: NAMES('Grants that show it.'),
  taken_away_by: NAMES('Subjects without whom alone it would be seen.'),
});

const EXPLANATION = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    chain: NAMES('Who asks for whom: root first.'),
    sees: SEES,
    label: textOrNull('Of a column.'),
    mask: textOrNull('How the label is shown to those who may not see it.'),
    columns: list(object({ name: text(), sees: SEES }), 'Of a relation, all that are seen.'),
    taken_away_by: list(
      object({ subject: text(), would_see: SEES }),
      'Subjects without whom alone more would be seen.',
    ),
    because: NAMES('What decides, in words.'),
    roles: list(ROLE_REASON),
    grants: list(GRANT_REASON),
    denials: list(DENY_REASON),
    row: orNull(ROW_REASON),
    versions: VERSIONS,
  },
  'How somebody sees an object, and each rule that bears on it.',
);

const WHY = object(
  {
    request_id: REQUEST_ID,
    object: text(),
    sees: SEES,
    masked_as: textOrNull('What a masked cell is shown as.'),
    because: NAMES('In words, from the caller’s own rights alone.'),
    grants: NAMES('Opaque ids of the caller’s grants on it.'),
    versions: VERSIONS,
  },
  'How the caller sees an object.',
);

const REQUESTED = object(
  {
    request_id: REQUEST_ID,
    delivered: flag('Whether the owner’s receiver has it; else it is in the audit log alone.'),
  },
  'The same whether or not there is such an object.',
);

export const ACCESS: readonly (readonly [string, JsonShape])[] = [
  ['AccessQuestion', ACCESS_QUESTION],
  ['AccessExplanation', EXPLANATION],
  ['Why', WHY],
  ['AccessRequest', ACCESS_REQUEST],
  ['AccessRequested', REQUESTED],
];
