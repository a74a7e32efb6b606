import type { UpstreamSchema } from '../../src/model/discovery/index.js';
import type { Connector } from '../../src/model/manifest/index.js';
import { counted } from '../output.js';
import { columnId } from '../proposal/choose.js';
import { type ViewFlows, viewFlows } from '../proposal/view-flows.js';
import { type DoctorFinding, ok, warn } from './finding.js';

const MOST_NAMED = 20;
const HINT =
  'label it in the manifest as what it is made of, if it tells of that; where it does not, say so in its description';

/** Columns of views that the manifest declares without a label of the columns that they are made of, however many views lie between. */
export function viewLabelFindings(
  about: string,
  { relations, truncated }: UpstreamSchema,
  connector: Connector,
): readonly DoctorFinding[] {
  const declared = labelsOf(connector);
  const views = relations.filter((r) => r.definition !== null);
  const shown = views.flatMap(({ schema, name, columns }) =>
    columns.map((c) => columnId({ schema, table: name }, c.name)).filter((id) => declared.has(id)),
  );
  if (shown.length === 0 || [...declared.values()].every((label) => label === null)) return [];
  const flows = viewFlows(relations);
  const lacking = shown.flatMap((id): readonly DoctorFinding[] => {
    const own = declared.get(id) ?? null;
    const sources = [...reachedFrom(id, flows)].flatMap((source) => {
      const label = declared.get(source) ?? null;
      return label === null ? [] : [{ source, label }];
    });
    if (sources.length === 0 || sources.some(({ label }) => label === own)) return [];
    const made = sources.slice(0, 3).map(({ source, label }) => `${source} (${label})`);
    const more = sources.length > made.length ? ` and ${sources.length - made.length} more` : '';
    const label = own === null ? 'no label' : `the label ${own}`;
    return [warn(about, `view column ${id} has ${label}, and is made of ${made.join(', ')}${more}`, HINT)];
  });
  const unread = truncated ? [warn(about, 'not every view was looked at: there are too many relations')] : [];
  if (lacking.length === 0)
    return [
      ...unread,
      ok(about, `${counted(shown.length, 'column', 'columns')} of views labelled as what they are made of`),
    ];
  const more = lacking.length - MOST_NAMED;
  return [
    ...unread,
    ...lacking.slice(0, MOST_NAMED),
    ...(more > 0 ? [warn(about, `and ${more} more such columns of views`, HINT)] : []),
  ];
}

/** The label of each declared column; null where it has none. */
function labelsOf({ tables }: Connector): ReadonlyMap<string, string | null> {
  return new Map(
    [...tables.values()].flatMap((table) =>
      [...table.columns.values()].map((c) => [columnId(table, c.name), c.sensitivity] as const),
    ),
  );
}

/** Every column that `id` is made of, those of views on the way with them. */
function reachedFrom(id: string, flows: ViewFlows): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [id];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const { id: source } of flows.get(at) ?? []) {
      if (reached.has(source)) continue;
      reached.add(source);
      open.push(source);
    }
  }
  return reached;
}
