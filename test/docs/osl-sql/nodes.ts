/** The node types that the parser may put into the tree of a SELECT, and what they are. */
export const SELECT_NODES: ReadonlyMap<string, string> = new Map([
  ['SelectStmt', 'SELECT, VALUES, TABLE and set operations'],
  ['ResTarget', 'an output, with its name'],
  ['ColumnRef', 'a column'],
  ['A_Star', '`*`'],
  ['A_Const', 'a literal'],
  ['Integer', 'a whole number'],
  ['Float', 'any other number'],
  ['Boolean', '`true`, `false`'],
  ['String', 'a text, or a part of a name'],
  ['BitString', "`b'101'`: a varbit"],
  ['ParamRef', '`$1`'],
  ['List', 'a list of values'],
  ['A_Expr', 'an operator, LIKE, BETWEEN, IN, IS DISTINCT FROM, NULLIF'],
  ['BoolExpr', 'AND, OR, NOT'],
  ['NullTest', 'IS NULL'],
  ['BooleanTest', 'IS TRUE'],
  ['CaseExpr', 'CASE'],
  ['CaseWhen', 'WHEN … THEN'],
  ['CoalesceExpr', 'COALESCE'],
  ['MinMaxExpr', 'GREATEST, LEAST'],
  ['FuncCall', 'a function, an aggregate, a window call'],
  ['NamedArgExpr', '`name => value`: in RETRIEVE, TRAVERSE and operators alone'],
  ['TypeCast', 'a cast'],
  ['TypeName', 'a type'],
  ['CollateClause', 'COLLATE'],
  ['SQLValueFunction', 'CURRENT_DATE and similar'],
  ['A_ArrayExpr', 'ARRAY[…]'],
  ['A_Indirection', 'a subscript; of rows, a field'],
  ['A_Indices', '`[1]`, `[1:2]`'],
  ['RowExpr', 'ROW: in comparisons, and as the list of keys of a TRAVERSE'],
  ['SubLink', 'a subquery in a value'],
  ['RangeVar', 'an entity'],
  ['Alias', 'an alias'],
  ['RangeSubselect', 'a derived table'],
  ['RangeFunction', 'RETRIEVE, TRAVERSE, and functions that make rows'],
  ['JoinExpr', 'JOIN'],
  ['RangeTableSample', 'TABLESAMPLE'],
  ['RangeTableFunc', 'XMLTABLE'],
  ['RangeTableFuncCol', 'a column of XMLTABLE'],
  ['ColumnDef', 'a list of column definitions in FROM'],
  ['WithClause', 'WITH'],
  ['CommonTableExpr', 'a common table'],
  ['CTESearchClause', 'SEARCH'],
  ['CTECycleClause', 'CYCLE'],
  ['SortBy', 'a key of ORDER BY'],
  ['WindowDef', 'OVER, WINDOW'],
  ['GroupingSet', 'GROUPING SETS, ROLLUP, CUBE'],
  ['GroupingFunc', 'GROUPING'],
  ['IntoClause', 'SELECT INTO'],
  ['LockingClause', 'FOR UPDATE, FOR SHARE'],
  ['SetToDefault', 'DEFAULT'],
  ['MergeSupportFunc', 'MERGE_ACTION'],
  ['XmlExpr', 'XMLELEMENT and similar'],
  ['XmlSerialize', 'XMLSERIALIZE'],
  ['JsonAggConstructor', 'what JSON_OBJECTAGG and JSON_ARRAYAGG share'],
  ['JsonArgument', 'PASSING of the SQL/JSON functions'],
  ['JsonArrayAgg', 'JSON_ARRAYAGG'],
  ['JsonArrayConstructor', 'JSON_ARRAY'],
  ['JsonArrayQueryConstructor', 'JSON_ARRAY over a query'],
  ['JsonBehavior', 'ON EMPTY, ON ERROR'],
  ['JsonFormat', 'FORMAT JSON'],
  ['JsonFuncExpr', 'JSON_VALUE, JSON_QUERY, JSON_EXISTS'],
  ['JsonIsPredicate', 'IS JSON'],
  ['JsonKeyValue', 'a member of JSON_OBJECT'],
  ['JsonObjectAgg', 'JSON_OBJECTAGG'],
  ['JsonObjectConstructor', 'JSON_OBJECT'],
  ['JsonOutput', 'RETURNING of the SQL/JSON functions'],
  ['JsonParseExpr', 'JSON()'],
  ['JsonReturning', 'the type of RETURNING'],
  ['JsonScalarExpr', 'JSON_SCALAR'],
  ['JsonSerializeExpr', 'JSON_SERIALIZE'],
  ['JsonTable', 'JSON_TABLE'],
  ['JsonTableColumn', 'a column of JSON_TABLE'],
  ['JsonTablePathSpec', 'the path of JSON_TABLE'],
  ['JsonValueExpr', 'a value of the SQL/JSON functions'],
]);

/** Nodes that analysis, planning and the parser's own envelope add to trees; the grammar makes none of them. */
export const NOT_OF_THE_GRAMMAR: ReadonlySet<string> = new Set(
  `ParseResult ScanResult ScanToken SummaryResult Table Function FilterColumn OidList IntList TableFunc Var Param
  Aggref WindowFunc WindowFuncRunCondition SubscriptingRef FuncExpr OpExpr DistinctExpr NullIfExpr ScalarArrayOpExpr
  SubPlan AlternativeSubPlan FieldSelect FieldStore RelabelType CoerceViaIO ArrayCoerceExpr ConvertRowtypeExpr
  CollateExpr CaseTestExpr ArrayExpr RowCompareExpr JsonConstructorExpr JsonExpr JsonTablePath JsonTablePathScan
  JsonTableSiblingJoin MergeAction CoerceToDomain CoerceToDomainValue NextValueExpr InferenceElem ReturningExpr
  TargetEntry RangeTblRef FromExpr OnConflictExpr Query SortGroupClause WindowClause RowMarkClause RangeTblEntry
  RTEPermissionInfo RangeTblFunction TableSampleClause WithCheckOption CallContext InlineCodeBlock`.split(
    /\s+/,
  ),
);

/** Parts of statements that are no SELECT. */
export const OF_OTHER_STATEMENTS: ReadonlySet<string> = new Set(
  `AccessPriv AlterTableCmd ATAlterConstraint Constraint CreateOpClassItem CurrentOfExpr DefElem FunctionParameter
  IndexElem InferClause MergeWhenClause MultiAssignRef ObjectWithArgs OnConflictClause PartitionBoundSpec PartitionCmd
  PartitionElem PartitionRangeDatum PartitionSpec PublicationObjSpec PublicationTable ReturningClause ReturningOption
  RoleSpec StatsElem TableLikeClause TriggerTransition VacuumRelation`.split(/\s+/),
);

/** The enumerations of a SELECT's tree, without the values that only analysis and planning give. */
export const SELECT_KINDS: ReadonlyMap<string, ReadonlySet<string>> = new Map(
  Object.entries({
    A_Expr_Kind: [],
    BoolExprType: [],
    BoolTestType: [],
    CTEMaterialize: [],
    GroupingSetKind: ['GROUPING_SET_SIMPLE'],
    JoinType: 'JOIN_SEMI JOIN_ANTI JOIN_RIGHT_SEMI JOIN_RIGHT_ANTI JOIN_UNIQUE_OUTER JOIN_UNIQUE_INNER'.split(
      ' ',
    ),
    JsonExprOp: ['JSON_TABLE_OP'],
    LimitOption: [],
    LockClauseStrength: ['LCS_NONE'],
    MinMaxOp: [],
    NullTestType: [],
    SQLValueFunctionOp: [],
    SetOperation: [],
    SortByDir: [],
    SortByNulls: [],
    SubLinkType: ['ROWCOMPARE_SUBLINK', 'MULTIEXPR_SUBLINK', 'CTE_SUBLINK'],
    XmlExprOp: ['IS_XMLSERIALIZE'],
  }).map(([name, without]) => [name, new Set(without)]),
);
