/** The conformance levels that are declared. Written by test/proof/conformance from what it proves; not by hand. */
export const CONFORMANCE_LEVELS: readonly string[] = [
  'discovery',
  'query',
  'retrieval',
  'traversal',
  'metrics',
  'authoring',
  'mcp',
  'authentication',
  'errors',
  'limits',
  'versioning',
  'lineage',
  'columnar',
];
