export type { ManifestCode } from './codes.js';
export { CODES } from './codes.js';
export { RESERVED } from './compile/columns.js';
export { compileManifest } from './compile/compile.js';
export { manifestShape } from './compile-source.js';
export { DEPRECABLE, deprecationOf } from './deprecated.js';
export type { Diagnostic, Path, PathStep, Position, Problem, Range, Severity } from './diagnostic.js';
export { formatDiagnostics, ManifestProblems, pointer } from './diagnostic.js';
export type { Composition, EmbeddingProtocol, ManifestDocument, RerankProtocol } from './document.js';
export type { FragmentDocument } from './fragment.js';
export { frozenMap } from './frozen-map.js';
export { indexedFacet, indexedFacets } from './indexed-facets.js';
export { keylessEntities } from './keyless.js';
export {
  compilePublishable,
  type Layered,
  loadLayered,
  OverlayConflict,
  type Publishable,
  parsePublishable,
} from './layered.js';
export type { LaterProblem, PolicyFile } from './load.js';
export {
  loadManifest,
  loadPolicyDocument,
  parseFragment,
  parseManifest,
  parsePolicyDocument,
  policyShape,
} from './load.js';
export type {
  Bridge,
  BridgeSide,
  CacheRule,
  Connector,
  Derived,
  EntityFacts,
  Facet,
  FacetEmbedding,
  FacetVersion,
  LinkEnd,
  Manifest,
  Relationship,
  Reranker,
  RollupFacts,
  Table,
  TableColumn,
  Term,
} from './manifest.js';
export { isModelName, isName, modelNameFrom, nameFrom, withEnd } from './name.js';
export {
  conflictsBetween,
  EMPTY_OVERLAY,
  memberAt,
  type Overlay,
  overOf,
  pathsIn,
  shrunk,
} from './overlay.js';

export { OutsidePublishing } from './publishable.js';
export { MANIFEST_SCHEMA } from './schema/manifest.js';
export { POLICY_SCHEMA } from './schema/policy.js';
export { parseSource, raise, readText as readManifestText, type YamlSource } from './source.js';
export { tableName } from './table-name.js';
export { systemUrlVariable, urlVariable } from './url-variables.js';
