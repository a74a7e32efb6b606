import { GRAINS } from 'osl-compiler';
import { exactly, flag, list, oneOf, type Shape, text, textOrNull } from './shape.js';

const NAME = text(
  '`entity__column`, an entity, `metric_time` or `relationship__column`, each with `__grain` or without.',
);
const GRAIN = oneOf(...GRAINS);
const MOMENT = textOrNull('A day, or an ISO 8601 time; UTC where it has no offset.');

function either(...shapes: readonly Shape[]): Shape {
  return { anyOf: shapes };
}

const KEYS = list(either(NAME, exactly({ name: NAME, 'grain?': GRAIN, 'timeGranularity?': GRAIN })));
const ORDER = list(
  either(
    text('A name of what is asked; `-` before it is descending.'),
    exactly({ name: NAME, 'grain?': GRAIN, 'timeGranularity?': GRAIN, 'descending?': flag() }),
  ),
);
const CONDITION = either(
  text(
    'A predicate whose names are `{{ Dimension() }}`, `{{ TimeDimension() }}`, `{{ Entity() }}` or `{{ Metric() }}`.',
  ),
  exactly({ sql: text() }),
);

const MEMBERS = {
  metrics: {
    ...list(either(text(), exactly({ name: text(), 'alias?': textOrNull() }))),
    minItems: 1,
  },
  'group_by?': KEYS,
  'groupBy?': KEYS,
  'where?': either(CONDITION, list(CONDITION)),
  'order_by?': ORDER,
  'orderBy?': ORDER,
  'limit?': { type: 'integer', minimum: 0, maximum: 2_147_483_647 },
  'time_constraint?': exactly({ 'start?': MOMENT, 'end?': MOMENT }, 'Both included.'),
  'grain?': GRAIN,
  'timeGranularity?': GRAIN,
  'explain?': flag('Validate and plan only; no rows.'),
  'upstream?': { ...oneOf('statement', 'plan'), description: 'With `explain`, for admins.' },
} as const;

/** A metrics body: docs/metrics.md. */
export const METRICS_QUERY = exactly(MEMBERS, 'A metrics query.');

/** The members of a metrics body in the spelling of these pages. */
export const METRICS_MEMBERS = {
  metrics: MEMBERS.metrics,
  group_by: MEMBERS['group_by?'],
  where: MEMBERS['where?'],
  order_by: MEMBERS['order_by?'],
  limit: MEMBERS['limit?'],
  time_constraint: MEMBERS['time_constraint?'],
} as const;
