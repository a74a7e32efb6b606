/** Sessions of one kind with a database. */
export interface EnginePool {
  /** `questions`: one at a time; `short`: shared by short questions; `system`: of the gateway itself. */
  readonly purpose: 'questions' | 'short' | 'system';
  /** How many there may be. */
  readonly size: number;
  readonly open: number;
  /** Statements under way. */
  readonly running: number;
  /** Questions that wait for a session. */
  readonly waiting: number;
  /** `full`: the database has all the connections that it takes; `lost`: it cannot be reached, or refuses us. */
  readonly reach: 'open' | 'full' | 'lost';
}
