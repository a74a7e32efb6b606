import { type Expr, type MatchedAttribute, predicateSql, quoteLiteral } from 'osl-compiler';
import { attributesOf, MAX_CHAIN } from '../../../policy/index.js';
import { call } from './sql.js';

/**
 * A row filter of the policy as SQL of the database's own: it holds for every subject of the chain that the session's
 * rights name. That each of them has the attributes is `granted`'s to say.
 */
export function filterSql(filter: Expr): string {
  const conjuncts = filter.kind === 'and' ? filter.args : [filter];
  return conjuncts.map((c) => (distributes(c) ? shared(c) : unrolled(c))).join(' and ');
}

/**
 * Whether `expr`, asked of each subject and ANDed, is `expr` with its attributes ANDed: true of what is made of AND and
 * OR where no OR has attributes in two of its arms.
 */
function distributes(expr: Expr): boolean {
  if (!mentions(expr)) return true;
  switch (expr.kind) {
    case 'attribute_match':
      return !mentions(expr.arg);
    case 'and':
      return expr.args.every(distributes);
    case 'or':
      return expr.args.filter(mentions).length === 1 && expr.args.every(distributes);
    default:
      return false;
  }
}

function mentions(expr: Expr): boolean {
  return attributesOf(expr).size > 0;
}

/** With the values that all subjects of the chain share. */
function shared(expr: Expr): string {
  return predicateSql(expr, (m) => matchSql(m, 'null::int4'));
}

/** For one subject after the other, as far as the chain goes; a chain is never longer than a token admits. */
function unrolled(expr: Expr): string {
  let sql = '';
  for (let i = MAX_CHAIN - 1; i >= 0; i--) {
    const one = predicateSql(expr, (m) => matchSql(m, `${i}`));
    sql = i === MAX_CHAIN - 1 ? one : `(${one} and (${call('beyond', `${i + 1}`)} or ${sql}))`;
  }
  return sql;
}

function matchSql({ attribute, arg, operator, type }: MatchedAttribute, subject: string): string {
  const unbound = call('unbound', quoteLiteral(attribute), subject);
  // Without the cast, which changes nothing, it would be read as a subquery of rows.
  const values = `${call('shared', quoteLiteral(attribute), subject, `null::${type}`)}::${type}`;
  return `(${unbound} or ${arg} ${operator} any (${values}))`;
}
