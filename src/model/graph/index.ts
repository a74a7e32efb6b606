/** The semantic graph as a given reader may see it: schema, domain map, resolver. */

export {
  fullView,
  fullViewSteps,
  type GraphPart,
  governedFacets,
  governedView,
  governedViewSteps,
} from './build-view.js';
export { discoveredIn, domainMapSteps } from './domain-map.js';
export { entityExamples, metricExamples } from './language.js';
export {
  type CatalogName,
  columnName,
  entityName,
  facetName,
  metricName,
  objectName,
  objectNamed,
  objectsIn,
  shortName,
} from './names.js';
export { type Match, type Resolution, resolve, resolveSteps } from './resolve.js';
export { type SchemaDocument, schemaSteps } from './schema.js';
export {
  chooseObjects,
  MOST_NAMES,
  SCHEMA_PARTS,
  type SchemaChoice,
  type SchemaPart,
  type SchemaSelection,
  schemaIndex,
  schemaPart,
} from './schema-part.js';
export type { GraphView } from './view.js';
export {
  groupedBy,
  isMore,
  measuredType,
  VISIBILITIES,
  type Visibility,
  visibilities,
  widestVisibility,
} from './view.js';
