import { declaredOid } from 'osl-compiler';
import { error, type Portal, WireError, type WireStatement } from '../../../wire/index.js';
import type { StatementNode } from './command.js';
import { planChanged } from './session-requests.js';
import type { SessionParts } from './session-state.js';

type PrepareNode = Extract<StatementNode, { PrepareStmt: unknown }>['PrepareStmt'];
type ExecuteNode = Extract<StatementNode, { ExecuteStmt: unknown }>['ExecuteStmt'];

/** Statements created by EXECUTE. Another EXECUTE must not run them, which prevents arbitrarily long chains. */
const EXECUTE_STATEMENTS = new WeakSet<WireStatement>();

/**
 * Prepares `PREPARE name [(types)] AS query`. Running it prepares the query, which is counted and recorded like Parse.
 * @throws WireError
 */
export function prepareCommand(
  session: SessionParts,
  { name = '', argtypes = [] }: PrepareNode,
  prepareQuestion: (parameterTypes: readonly number[]) => Promise<WireStatement>,
  text: string,
): WireStatement {
  const parameterTypes = argtypes.map(declaredTypeOid);
  const markRun = session.records.holdCommand();
  return {
    parameterTypes: [],
    columns: null,
    open: () => ({
      fetch: async () => {
        markRun();
        session.state.block.requireUsable();
        const statement = await prepareQuestion(parameterTypes);
        session.statements.storeStatement(name, statement, text);
        await session.records.pending.record();
        return { suspended: false, tag: 'PREPARE' };
      },
      close: () => undefined,
    }),
  };
}

/**
 * Prepares `EXECUTE name [(constants)]`, which runs the named statement. The run is authorized, counted and recorded
 * like a run of the statement's query.
 * @throws WireError
 */
export function executeStatement(
  session: SessionParts,
  { name = '', params = [] }: ExecuteNode,
): WireStatement {
  const statement = statementNamed(session, name);
  if (EXECUTE_STATEMENTS.has(statement))
    throw error('0A000', `prepared statement "${name}" is an EXECUTE itself`);
  const parameters = argumentValues(name, params, statement.parameterTypes);
  const parameterFormats = parameters.map(() => 0 as const);
  const markRun = session.records.holdCommand();
  const executing: WireStatement = {
    parameterTypes: [],
    columns: statement.columns,
    copy: statement.copy ?? null,
    open: async ({ resultFormats }) => {
      // The name may have been redefined between Parse and Bind.
      if (statementNamed(session, name) !== statement) throw planChanged();
      return withoutErrorPositions(
        await statement.open({ parameterFormats, parameters, resultFormats }),
        markRun,
      );
    },
  };
  EXECUTE_STATEMENTS.add(executing);
  return executing;
}

function statementNamed({ statements }: SessionParts, name: string): WireStatement {
  const statement = statements.statement(name);
  if (statement === undefined) throw error('26000', `prepared statement "${name}" does not exist`);
  return statement;
}

/** Removes error positions, which refer to the text of PREPARE. */
function withoutErrorPositions(portal: Portal, markRun: () => void): Portal {
  return {
    async fetch(maxRows, rows) {
      markRun();
      try {
        return await portal.fetch(maxRows, rows);
      } catch (failure) {
        throw failure instanceof WireError ? failure.withoutPosition() : failure;
      }
    },
    close: () => portal.close(),
  };
}

type Constant = Extract<StatementNode, { A_Const: unknown }>['A_Const'];

const BOOL = 16;
const INTEGERS: ReadonlySet<number> = new Set([20, 21, 23]);
const NUMBERS: ReadonlySet<number> = new Set([...INTEGERS, 700, 701, 1700]);
const OID = 26;
const NAME = 19;
const TEXTS: ReadonlySet<number> = new Set([25, 1042, 1043, NAME]);
/** OIDs of text and varchar, between which a constant needs no cast. */
const PLAIN_TEXTS: ReadonlySet<number> = new Set([25, 1043]);

/**
 * Returns the values of EXECUTE's arguments in text format, with null for NULL.
 *
 * @throws WireError 42601, 42804, 0A000 and others
 */
function argumentValues(
  name: string,
  argumentNodes: readonly StatementNode[],
  types: readonly number[],
): readonly (Uint8Array | null)[] {
  if (argumentNodes.length !== types.length)
    throw error('42601', `wrong number of parameters for prepared statement "${name}"`, {
      detail: `Expected ${types.length} parameters but got ${argumentNodes.length}.`,
    });
  return types.map((oid, i) => {
    const value = argumentText(argumentNodes[i], oid, i + 1);
    return value === null ? null : Buffer.from(value, 'utf8');
  });
}

/** Converts a constant to text of type `oid`, with the casts that apply to an assignment. */
function argumentText(node: StatementNode | undefined, oid: number, position: number): string | null {
  if (node === undefined) throw notConstant();
  if ('A_Const' in node) return constantText(node.A_Const, oid, position);
  if ('ParamRef' in node) throw error('42P02', `there is no parameter $${node.ParamRef.number ?? 0}`);
  if (!('TypeCast' in node)) throw notConstant();
  const { typeName, arg } = node.TypeCast;
  if (typeName === undefined || (typeName.typmods ?? []).length > 0) throw notConstant();
  const castOid = typeOid(typeName);
  if (castOid !== oid && !(PLAIN_TEXTS.has(castOid) && PLAIN_TEXTS.has(oid))) {
    throw error('0A000', `parameter $${position} is given as a value of another type than its own`, {
      hint: 'write it as a constant without a cast, or in the type that PREPARE declares',
    });
  }
  return argumentText(arg, castOid, position);
}

function notConstant(): WireError {
  return error('0A000', 'EXECUTE takes constants only', {
    hint: 'compute it in the prepared statement, or send parameters by the protocol',
  });
}

function constantText(
  { isnull, sval, boolval, ival, fval }: Constant,
  oid: number,
  position: number,
): string | null {
  if (isnull === true) return null;
  if (sval !== undefined) return sval.sval ?? '';
  if (boolval !== undefined) {
    if (oid !== BOOL && !TEXTS.has(oid)) throw cannotCoerce(position);
    return boolval.boolval === true ? 'true' : 'false';
  }
  if (ival !== undefined) return numberArgument(String(ival.ival ?? 0), oid, position);
  if (fval !== undefined) return numberArgument(fval.fval ?? '', oid, position);
  throw notConstant();
}

const INTEGER = /^-?\d+$/;
/** Matches numbers in Postgres' canonical form. */
const CANONICAL_NUMBER = /^(?!-0+(?:\.0*)?$)-?(?:0|[1-9]\d*)(?:\.\d+)?$/;

function numberArgument(text: string, oid: number, position: number): string {
  if (INTEGERS.has(oid)) return roundToInteger(text);
  if (NUMBERS.has(oid) || (oid === OID && INTEGER.test(text))) return text;
  if (!TEXTS.has(oid)) throw cannotCoerce(position);
  if (!CANONICAL_NUMBER.test(text))
    throw error('0A000', `parameter $${position} is a text: write it in quotes`);
  return text;
}

/** Number of digits above which a number exceeds the range of every integer type. */
const MAX_INTEGER_DIGITS = 20;

/**
 * Rounds to an integer, half away from zero like an assignment. Text that is not a plain decimal is returned
 * unchanged.
 */
function roundToInteger(text: string): string {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d*)\.(\d*)$/.exec(text) ?? [];
  if (whole === '' && fraction === '') return text;
  const digits = whole.replace(/^0+/, '');
  if (digits.length > MAX_INTEGER_DIGITS) return `${sign}${digits}`;
  return `${sign}${BigInt(digits) + (fraction >= '5' ? 1n : 0n)}`;
}

function cannotCoerce(position: number): WireError {
  return error('42804', `parameter $${position} cannot be coerced to the expected type`, {
    hint: 'You will need to rewrite or cast the expression.',
  });
}

type TypeNode = NonNullable<Extract<StatementNode, { TypeCast: unknown }>['TypeCast']['typeName']>;

/** Returns the OID of a type name; 0 if the query determines the type. @throws WireError 0A000, 42704 */
function declaredTypeOid(node: StatementNode): number {
  if (!('TypeName' in node)) throw error('0A000', 'a type is a name');
  return typeOid(node.TypeName);
}

function typeOid({ names = [], arrayBounds = [], setof, pct_type }: TypeNode): number {
  if (setof === true || pct_type === true) throw error('0A000', 'a type is declared by its name alone');
  const parts = names.map((n) => ('String' in n ? (n.String.sval ?? '') : ''));
  const unqualified = parts.length === 2 && parts[0] === 'pg_catalog' ? parts.slice(1) : parts;
  const [name = ''] = unqualified;
  const oid = unqualified.length === 1 ? declaredOid(name, arrayBounds.length > 0) : null;
  if (oid === null) throw error('42704', `type "${parts.join('.')}" does not exist`);
  return oid;
}
