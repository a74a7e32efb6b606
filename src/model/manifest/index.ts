export { compileManifest } from './compile/compile.js';
export { RESERVED } from './compile/relations.js';
export type {
  Diagnostic,
  DiagnosticSeverity,
  Path,
  PathStep,
  TextRange,
  UnplacedDiagnostic,
} from './diagnostic.js';
export { CODES, formatDiagnostics, ManifestProblems, pointer } from './diagnostic.js';
export type { Composition, EmbeddingProtocol, ManifestDocument, RerankProtocol } from './document.js';
export { loadLayered, loadManifest, loadPolicyDocument, readText as readManifestText } from './files.js';
export type { PolicyFile } from './load.js';
export {
  compilePublishable,
  manifestShape,
  NotPublishable,
  type Publishable,
  parseFragment,
  parseManifest,
  parsePolicyDocument,
  parsePublishable,
  policyShape,
  unpublishablePart,
} from './load.js';
export type {
  Bridge,
  CacheRule,
  Connector,
  ConnectorStandbys,
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
export {
  DEPRECABLE,
  deprecationOf,
  everythingIn,
  frozenMap,
  indexedFacet,
  indexedFacets,
  keylessEntities,
} from './manifest.js';
export {
  isModelName,
  isName,
  modelNameFrom,
  nameFrom,
  systemUrlVariable,
  tableName,
  urlVariable,
  withSuffix,
} from './name.js';
export type { FragmentDocument } from './overlay.js';
export {
  conflictsBetween,
  EMPTY_OVERLAY,
  fingerprintsOf,
  memberAt,
  type Overlay,
  pathsIn,
  withoutPublished,
} from './overlay.js';
export { MANIFEST_SCHEMA } from './schema/manifest.js';
export { POLICY_SCHEMA } from './schema/policy.js';
export { parseSource, throwProblems, type YamlSource } from './source.js';
