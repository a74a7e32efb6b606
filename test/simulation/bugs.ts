/** A bug that is planted in a copy of the gateway, to see that the simulator finds it. */
export interface PlantedBug {
  readonly name: string;
  /** Source file, relative to the root. */
  readonly file: string;
  /** Text that stands in it exactly once. */
  readonly from: string;
  readonly to: string;
}

export const BUGS: readonly PlantedBug[] = [];
