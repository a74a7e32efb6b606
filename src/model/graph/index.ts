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
export { type Match, type Resolution, resolve, resolveSteps } from './resolve.js';
export {
  chooseObjects,
  MOST_NAMES,
  SCHEMA_PARTS,
  type SchemaChoice,
  type SchemaDocument,
  type SchemaPart,
  type SchemaSelection,
  schemaIndex,
  schemaPart,
  schemaSteps,
} from './schema.js';
export {
  type CatalogName,
  columnName,
  entityName,
  facetName,
  type GraphView,
  groupedBy,
  isMore,
  measuredType,
  metricName,
  objectName,
  objectNamed,
  objectsIn,
  readsOf,
  shortName,
  VISIBILITIES,
  type Visibility,
  visibilities,
  widestVisibility,
} from './view.js';
