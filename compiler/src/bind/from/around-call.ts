import type { FuncCall } from '@pgsql/types';

/** Whether a construct stands where it is not taken, and what it is called. */
export type Around = readonly [is: boolean, construct: string];

/** What the grammar lets stand with the arguments of a call, and after it, and no function in FROM takes. */
export function aroundCall(call: FuncCall): readonly Around[] {
  return [
    [call.agg_distinct === true, 'DISTINCT'],
    [call.agg_order !== undefined, 'ORDER BY among arguments'],
    [call.agg_filter !== undefined, 'FILTER'],
    [call.agg_within_group === true, 'WITHIN GROUP'],
    [call.agg_star === true, '`*` as an argument'],
    [call.over !== undefined, 'OVER'],
    [call.func_variadic === true, 'VARIADIC'],
  ];
}
