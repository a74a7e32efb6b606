/** The OSL-SQL compiler: turns text, catalog and access rights into governed SQL. No I/O, no clock, no database. */
export type {
  Access,
  GroupRule,
  MaskKind,
  OverlapRule,
  RelationAccess,
  RelationGrant,
} from './access/access.js';
export { type AttributePattern, attributePattern, forChain } from './access/access.js';
export { GROUPS_ONLY, type GroupsOnlyReason } from './access/groups-only.js';
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
  formatUnit,
  fullName,
  type Joins,
  labelsOf,
  type Metric,
  type MetricFormat,
  type MetricInput,
  type ObjectNamespace,
  type RatioMetric,
  type ReadColumn,
  type Relation,
  type RolledColumn,
  type Rollup,
  type RollupMeasure,
  type SameColumns,
  type SimpleMetric,
  unqualifiedName,
} from './catalog/catalog.js';
export {
  ALL_FEATURES,
  FEATURES,
  type Feature,
  type Features,
  featuresBy,
  NO_FEATURES,
} from './catalog/features.js';
export type { MetricsRequest } from './catalog/grain.js';
export {
  GRAINS,
  type Grain,
  type Instant,
  type PeriodSpan,
  parseGrain,
  parseInstant,
  parseWindow,
} from './catalog/grain.js';
export {
  type DecoderName,
  type EncoderName,
  OPERATORS,
  type OperatorArgument,
  type OperatorArgumentType,
  type OperatorName,
  type OperatorSignature,
  operatorNamed,
} from './catalog/operators.js';
export {
  type CompiledStatement,
  type CompileOptions,
  compile,
  compileInSteps,
  compileMetrics,
  compilePopulations,
  compileTemplate,
} from './compile.js';
export { type EmittedSql, emit } from './emit/emit.js';
export { type MatchedAttribute, predicateSql, type SourceProbe, sourceProbes } from './emit/predicate.js';
export { literalText, type ValueSources, valuesOf } from './emit/writer.js';
export { withErrorPosition } from './error-position.js';
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
} from './errors/errors.js';
export { hintOn, SURFACE_PHRASES, type Surface } from './errors/surface-hints.js';
export { EVALUATION_FAULTS, isEvaluationFault, NEGATIVE_COUNTS } from './errors/value-faults.js';
export { explain, noticesOf, type PlanExplanation } from './explain.js';
export type { FunctionDefinition, OperatorDefinition } from './functions/define.js';
export { OPERATORS as SQL_OPERATORS } from './functions/operators.js';
export { FUNCTIONS } from './functions/resolve.js';
export { isVisibleFlag, visibleColumnName } from './govern/column-names.js';
export {
  type EntityKey,
  type KeyedPlan,
  type UnknownEntities,
  withEntityKeys,
} from './govern/entity-keys.js';
export { servedVersion, versionFor } from './govern/facet-version.js';
export type {
  GovernedPlanFields,
  GovernedRuntime,
  GovernedStore,
  OutputColumn,
} from './govern/governed-plan.js';
export { GovernedPlan, mayBeRedacted } from './govern/governed-plan.js';
export { REDACTED } from './govern/mask.js';
export { comparesOverlaps, MEMBER_DIGITS, MEMBER_KEY, type Population } from './govern/population.js';
export { indeterminacyOf, isRepeatable, isTimelessValue } from './govern/repeatable.js';
export type { UnusedRollup } from './govern/rollup/rollup.js';
export { ROLLUP_ROWS, ROLLUP_TIME, type RollupFault } from './govern/rollup/rollup.js';
export { type GovernedSample, governSample, type SampledColumn, type SampleKind } from './govern/sample.js';
export { isStored, type StoredName, stored } from './govern/store/columns.js';
export type { PlanTemplate } from './govern/template.js';
export { columnsRead, type VisibleColumn, visibleColumns } from './govern/visible-columns.js';
export { LIMITS } from './limits.js';
export {
  type ColumnLineage,
  columnLineage,
  type DirectKind,
  type IndirectKind,
  type Influence,
  type Transformation,
} from './lineage/trace.js';
export { fingerprint } from './plan/fingerprint.js';
export { isKeyLookup } from './plan/keys.js';
export type { AttributeMatch, Expr, Form, Slot } from './plan/plan.js';
export { relationsRead } from './plan/properties.js';
export {
  type CapHandling,
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
  type PassagePage,
  type Retrieval,
  type RowBounds,
  type RuntimeRelation,
  rowBounds,
  type Traversal,
  walkedKey,
} from './plan/runtime.js';
export { allLeaves } from './plan/walk.js';
export {
  applyGrammar,
  type Grammar,
  innerQuery,
  oneStatement,
  type ParsedStatement,
  type ParsedText,
  type PreparedText,
  parse,
  parseText,
  prepareText,
  ready,
  type StatementText,
  splitStatements,
  statementTexts,
} from './text/parse.js';
export { type PlainLiteral, type ShapedText, shapeOf } from './text/shape.js';
export { formsOf, type SqlForm, type StatementForms } from './text/sql-forms.js';
export {
  arrayElements,
  arrayText,
  identifier,
  quoteIdentifier,
  quoteLiteral,
  tableSql,
} from './text/sql-text.js';
export { charactersBefore, nearest, positionOfIndex } from './text/text.js';
export {
  type ColumnForm,
  type DeclaredColumn,
  decimalOf,
  declaredColumn,
  enumName,
  STORED_PATTERN,
  type StoredType,
  spelledColumn,
  storedType,
} from './types/column-form.js';
export { declaredOid, elementOid } from './types/declared-types.js';
export {
  type ArrayType,
  type ArrowForm,
  arrayOf,
  elementOf,
  isArray,
  isComparable,
  isInteger,
  isMoment,
  isNumber,
  type JsonForm,
  lengthOf,
  oidOf,
  SCALAR_TYPES,
  type ScalarType,
  type TypeName,
  typeNamed,
  typeOfOid,
  typeRow,
} from './types/types.js';
export type { RequestedWorld } from './world.js';
export { type CommonNames, isCommon, type MentionedNames, mentionedNames, withClauseNames } from './world.js';
