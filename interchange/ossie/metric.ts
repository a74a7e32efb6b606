import type { Node } from '@pgsql/types';
import type { ImportDraft, MetricBody } from '../draft.js';
import { shown } from '../names.js';
import type { Part } from '../part.js';
import { report } from '../source.js';
import { fit, isAggregate, NoFit, namesIn, reportDivision } from '../sql/expression.js';
import { identifier, print } from '../sql/print.js';
import { type Dataset, describedBy, fieldText } from './dataset.js';
import { expressionOf, loseExtensions, synonymsOf } from './expression.js';

/** Adds a metric to the draft, or reports it. */
export function addMetric(part: Part, datasets: ReadonlyMap<string, Dataset>, draft: ImportDraft): void {
  const source = part.needText('name');
  const words = synonymsOf(part);
  loseExtensions(part);
  part.lose('datatype', 'the type of a metric is that of its expression');
  const name = draft.named(draft.metricNames, source, part.place);
  if (name === null) return;
  const description = describedBy(part);
  const read = fit(() => documentOf(name, part, datasets, draft));
  if (!read.ok) {
    part.loseAll(`metric \`${shown(source)}\` does not map: ${read.reason}`);
    return;
  }
  draft.addMetric(name, read.value, part.place, description);
  draft.words(words, name, part.at('ai_context'));
}

function documentOf(
  name: string,
  part: Part,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): MetricBody {
  const { node } = expressionOf(part);
  const owners = [...ownersOf(node, datasets)];
  const [owner, second] = owners.length === 0 && datasets.size === 1 ? [...datasets.values()] : owners;
  if (owner === undefined) throw new NoFit('it names no dataset, so it is not said whose rows it counts');
  if (second === undefined) return simple(node, owner, part, datasets, name);
  return derived(name, node, part, datasets, draft);
}

function ownersOf(node: Node, datasets: ReadonlyMap<string, Dataset>): ReadonlySet<Dataset> {
  return new Set(namesIn(node).map((parts) => fieldNamed(parts, datasets).dataset));
}

interface DatasetField {
  readonly dataset: Dataset;
  readonly field: string;
}

/** `dataset.field`, or a field whose name only one dataset has. @throws NoFit */
function fieldNamed(parts: readonly string[], datasets: ReadonlyMap<string, Dataset>): DatasetField {
  const [first = '', field, more] = parts;
  if (more !== undefined) throw new NoFit(`\`${shown(parts.join('.'))}\` is no field of a dataset`);
  if (field !== undefined) {
    const dataset = datasets.get(first.toLowerCase());
    if (dataset === undefined) throw new NoFit(`dataset \`${shown(first)}\` is not there, or was lost`);
    return { dataset, field };
  }
  const having = [...datasets.values()].filter((d) => hasField(d, first));
  const [dataset, second] = datasets.size === 1 ? [...datasets.values()] : having;
  if (dataset === undefined) throw new NoFit(`\`${shown(first)}\` is a field of no dataset`);
  if (second !== undefined) throw new NoFit(`\`${shown(first)}\` is a field of several datasets`);
  return { dataset, field: first };
}

function hasField({ entity }: Dataset, name: string): boolean {
  return entity.column(name) !== null || entity.computed.has(name.toLowerCase());
}

function simple(
  node: Node,
  owner: Dataset,
  part: Part,
  datasets: ReadonlyMap<string, Dataset>,
  name: string,
): MetricBody {
  const what = `metric \`${name}\``;
  const expression = print(node, {
    column: (parts) => {
      const { dataset, field } = fieldNamed(parts, datasets);
      if (dataset !== owner) throw new NoFit('one aggregate takes the rows of several datasets');
      return fieldText(field, owner.entity, part, what);
    },
  });
  return { entity: owner.entity.name, expression };
}

/** An expression over several datasets: each aggregate becomes a metric. */
function derived(
  name: string,
  node: Node,
  part: Part,
  datasets: ReadonlyMap<string, Dataset>,
  draft: ImportDraft,
): MetricBody {
  const made: { readonly name: string; readonly document: MetricBody }[] = [];
  const expression = print(node, {
    column: (parts) => {
      throw new NoFit(`\`${shown(parts.join('.'))}\` stands outside an aggregate`);
    },
    call: (call) => {
      if (!isAggregate(call)) return null;
      const [owner, second] = [...ownersOf(call, datasets)];
      if (owner === undefined || second !== undefined)
        throw new NoFit('it is not said whose rows one of its aggregates takes');
      const own = draft.metricNames.take(`${name.slice(0, 50)}_part_${made.length + 1}`);
      made.push({ name: own, document: simple(call, owner, part, datasets, name) });
      return identifier(own);
    },
  });
  for (const metric of made) draft.addMetric(metric.name, metric.document, part.place);
  const names = made.map((m) => `\`${m.name}\``).join(', ');
  report(
    part.place,
    'approximated',
    `\`${name}\` is over several datasets: each is added up by itself (${names})`,
  );
  reportDivision(node, part.at('expression'));
  return { type: 'derived', expression };
}
