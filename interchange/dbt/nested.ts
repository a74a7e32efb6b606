import { safeText } from '../names.js';
import type { Part } from '../part.js';
import { columnElement, derivedElement, type ModelElement } from './element.js';
import type { ModelInfo } from './model-info.js';

/** A semantic model that is declared inside its model, as dbt 1.12 and Fusion write it. */
export interface NestedModel {
  readonly part: Part;
  /** Name of the semantic model; that of the model unless stated. */
  readonly name: string;
  readonly info: ModelInfo;
  /** Reads its entities and dimensions, which are those of its columns and of `derived_semantics`. */
  readonly elements: () => ModelElements;
}

interface ModelElements {
  readonly entities: readonly ModelElement[];
  readonly dimensions: readonly ModelElement[];
}

/** The semantic model of a model; if it has none, what would belong to one is reported and null is returned. */
export function nestedModel(part: Part, info: ModelInfo): NestedModel | null {
  const stated = part.isFlag('semantic_model') ? null : part.child('semantic_model');
  const enabled =
    stated === null ? part.isFlag('semantic_model') && part.flag('semantic_model') : isOn(stated);
  stated?.lose('group', 'a group of dbt has no counterpart');
  stated?.lose('config', 'configuration of dbt has no counterpart');
  const own = stated?.text('name') ?? part.needText('name');
  if (enabled === true) return { part, name: own, info, elements: () => elementsOf(part) };
  const why = `no semantic model of \`${safeText(own)}\` is enabled`;
  for (const key of ['agg_time_dimension', 'primary_entity', 'derived_semantics', 'metrics'])
    part.lose(key, why);
  for (const column of part.parts('columns'))
    for (const key of ['entity', 'dimension', 'granularity']) column.lose(key, why);
  return null;
}

function isOn(stated: Part): boolean {
  return stated.flag('enabled') ?? true;
}

function elementsOf(part: Part): ModelElements {
  const columns = part.parts('columns');
  const derived = part.child('derived_semantics');
  for (const column of columns)
    if (!column.has('dimension')) column.lose('granularity', 'a column that is no dimension has no grain');
  return {
    entities: [
      ...columns.flatMap((c) => columnElement(c, 'entity') ?? []),
      ...(derived?.parts('entities') ?? []).map(derivedElement),
    ],
    dimensions: [
      ...columns.flatMap((c) => columnElement(c, 'dimension') ?? []),
      ...(derived?.parts('dimensions') ?? []).map(derivedElement),
    ],
  };
}
