export { CODES } from './codes.js';
export { RESERVED } from './compile/columns.js';
export { compileManifest } from './compile/compile.js';
export type {
  Diagnostic,
  DiagnosticSeverity,
  Path,
  PathStep,
  TextRange,
  UnplacedDiagnostic,
} from './diagnostic.js';
export { formatDiagnostics, ManifestProblems, pointer } from './diagnostic.js';
export type { Composition, EmbeddingProtocol, ManifestDocument, RerankProtocol } from './document.js';
export type { FragmentDocument } from './fragment.js';
export { frozenMap } from './frozen-map.js';
export {
  compilePublishable,
  loadLayered,
  type Publishable,
  parsePublishable,
} from './layered.js';
export type { PolicyFile } from './load.js';
export {
  loadManifest,
  loadPolicyDocument,
  manifestShape,
  parseFragment,
  parseManifest,
  parsePolicyDocument,
  policyShape,
} from './load.js';
export type {
  Bridge,
  CacheRule,
  Connector,
  DeclaredFacetVersion,
  DeclaredTableColumn,
  DerivedAttributeSettings,
  EntityFacts,
  Facet,
  FacetEmbedding,
  Manifest,
  Relationship,
  RerankerSettings,
  RollupFacts,
  Table,
} from './manifest.js';
export { DEPRECABLE, deprecationOf, indexedFacet, indexedFacets, keylessEntities } from './manifest.js';
export {
  isModelName,
  isName,
  modelNameFrom,
  nameFrom,
  systemUrlVariable,
  urlVariable,
  withEnd,
} from './name.js';
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
