/** The column of a rollup that says how many rows of the entity a row of it stands for. */
export const ROLLUP_ROWS = '#n';
/** The column of a rollup that has the beginning of a row's period, a timestamp of UTC. */
export const ROLLUP_TIME = '#t';

/** Why a question is not answered from a rollup, in words that tell nothing of what is hidden. */
export type RollupFault =
  | 'it is not built, or too old'
  | 'the question reads rows singly, or more than this entity'
  | 'the question groups or filters by what is no dimension'
  | 'an aggregate cannot be put together from parts'
  | 'a row filter of the grants reads what is no dimension'
  | 'a column that is aggregated is masked'
  | 'a minimum group size applies';
