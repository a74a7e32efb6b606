/** The compiler of OSL-SQL: text, catalog and access in, governed SQL out. No I/O, no clock, no database. */
export type { Access, GroupRule, MaskKind, RelationAccess, RelationGrant } from './access.js';
export {
  bindPredicate,
  type ComputedFacts,
  computedFacts,
  couldBe,
  inputsOf,
  metricColumns,
  metricFault,
  metricType,
  mostPerHop,
} from './bind/index.js';
export {
  type Catalog,
  type Column,
  type ComputedColumn,
  type ConversionMetric,
  type CumulativeMetric,
  columnOf,
  type DerivedAttribute,
  type DerivedMetric,
  type Edge,
  type FacetStore,
  type FacetVersion,
  type Joins,
  labelsOf,
  type Metric,
  type MetricInput,
  type RatioMetric,
  type ReadColumn,
  type Relation,
  type RolledColumn,
  type Rollup,
  type RollupMeasure,
  type SameColumns,
  type SimpleMetric,
} from './catalog.js';
export {
  type ColumnForm,
  type DeclaredColumn,
  decimalOf,
  declaredColumn,
  spelledColumn,
} from './column-form.js';
export { type CommonNames, isCommon, withClauseNames } from './common-names.js';
export {
  type Compiled,
  type CompileOptions,
  compile,
  compileMetrics,
  compileTemplate,
  compiling,
} from './compile.js';
export { declaredOid, elementOid } from './declared-types.js';
export { type Emitted, emit } from './emit/emit.js';
export { type MatchedAttribute, predicateSql } from './emit/predicate.js';
export { type SourceProbe, sourceProbes } from './emit/source-probes.js';
export {
  assertNever,
  ERRORS,
  type ErrorName,
  type ErrorParameters,
  InternalError,
  type Position,
  QueryError,
  type QueryErrorFields,
  queryError,
} from './errors.js';
export { type Explanation, explain } from './explain.js';
export { noticesOf } from './explain-runtime.js';
export { ALL_FEATURES, FEATURES, type Feature, type Features, featuresBy, NO_FEATURES } from './features.js';
export { formsOf, type SqlForm, type StatementForms } from './forms.js';
export { fullName, plainName, type Room } from './full-name.js';
export {
  FUNCTIONS,
  type FunctionDefinition,
  OPERATORS as SQL_OPERATORS,
  type OperatorDefinition,
} from './functions/index.js';
export { type AttributePattern, attributePattern, forChain } from './govern/chain.js';
export { versionDue, versionFor } from './govern/facet-version.js';
export type {
  GovernedPlanFields,
  GovernedRuntime,
  GovernedStore,
  OutputColumn,
} from './govern/governed-plan.js';
export { GovernedPlan, mayBeRedacted } from './govern/governed-plan.js';
export { isVisibleFlag, REDACTED, visibleColumnName } from './govern/mask.js';
export { columnsRead } from './govern/reads.js';
export { isPlainTime, isRepeatable } from './govern/repeatable.js';
export type { PassedRollup } from './govern/rollup.js';
export { ROLLUP_ROWS, ROLLUP_TIME, type RollupFault } from './govern/rollup-columns.js';
export { type GovernedSample, governSample, type SampledColumn, type SampleKind } from './govern/sample.js';
export { isStored, type StoredName, stored } from './govern/store/columns.js';
export type { PlanTemplate } from './govern/template.js';
export { type VisibleColumn, visibleColumns } from './govern/visible.js';
export { GRAINS, type Grain, grainNamed, type Span, windowNamed } from './grain.js';
export { GROUPS_ONLY, type GroupsOnlyReason } from './groups-only.js';
export { type Instant, instantNamed } from './instant.js';
export { isKeyLookUp } from './key-look-up.js';
export { LIMITS } from './limits.js';
export {
  type ColumnLineage,
  columnLineage,
  type DirectKind,
  type IndirectKind,
  type Influence,
  type Transformation,
} from './lineage/column-lineage.js';
export { type Mentioned, mentionedIn } from './mentioned.js';
export { formatUnit, type MetricFormat } from './metric-format.js';
export type { MetricsRequest } from './metrics-request.js';
export {
  type ArgumentType,
  type DecoderName,
  type EncoderName,
  OPERATORS,
  type OperatorArgument,
  type OperatorName,
  type OperatorSignature,
  operatorNamed,
} from './operators.js';
export {
  applyGrammar,
  type Grammar,
  oneStatement,
  type Parsed,
  type ParsedText,
  type Prepared,
  parse,
  parseText,
  prepareText,
  ready,
  type StatementText,
  splitStatements,
  statementTexts,
} from './parse.js';
export { placedFault } from './place-of-fault.js';
export type { AttributeMatch, Expr, Form, Slot } from './plan.js';
export { queryWithin } from './query-within.js';
export { relationsRead } from './relations-read.js';
export {
  type Clipping,
  EVIDENCE,
  type Hop,
  type Hydration,
  type Legs,
  MAX_SKIP,
  type OperatedRows,
  type OperatorUse,
  ORDINAL,
  PASSAGE_COLUMNS,
  PATH,
  type Page,
  type Retrieval,
  type RuntimeRelation,
  type Traversal,
  walkedKey,
} from './runtime.js';
export { type PlainLiteral, type ShapedText, shapeOf } from './shape/scan.js';
export { arrayElements, arrayText, identifier, quoteIdentifier, quoteLiteral } from './sql-text.js';
export { enumName, STORED_PATTERN, type StoredType, storedType } from './stored.js';
export { hintOn, type Surface, WAYS } from './surface-hints.js';
export { charactersBefore, nearest, positionOfIndex } from './text.js';
export {
  type ArrayType,
  arrayOf,
  elementOf,
  isArray,
  isComparable,
  lengthOf,
  MULTIRANGE_TYPES,
  oidOf,
  RANGE_TYPES,
  SCALAR_TYPES,
  type ScalarType,
  type TypeName,
  typeNamed,
  typeOfOid,
} from './types.js';
export { EVALUATION_FAULTS, EXAMPLES, isEvaluationFault, NEGATIVE_COUNTS } from './value-faults.js';
export { literalText, type ValueSources, valuesOf } from './values.js';
export { type WantedRows, wantedRows } from './wanted-rows.js';
export type { AskedWorld } from './world.js';
