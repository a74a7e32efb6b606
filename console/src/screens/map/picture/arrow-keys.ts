export interface NodePosition {
  readonly id: string;
  /** Position; x grows to the right and y downwards. */
  readonly x: number;
  readonly y: number;
}

export const DIRECTIONS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'] as const;
export type Direction = (typeof DIRECTIONS)[number];

const VECTORS: Readonly<Record<Direction, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/**
 * The node to which an arrow key leads: the best of `others` in that direction, preferring near ones. Null if there is
 * none on that side.
 */
export function towards(
  direction: Direction,
  from: NodePosition,
  others: readonly NodePosition[],
): string | null {
  const [dx, dy] = VECTORS[direction];
  let best: { readonly id: string; readonly cost: number } | null = null;
  for (const { id, x, y } of others) {
    const [ox, oy] = [x - from.x, y - from.y];
    const distance = Math.hypot(ox, oy);
    const along = distance === 0 ? 0 : (ox * dx + oy * dy) / distance;
    if (along <= 0.05) continue;
    const cost = distance / along ** 2;
    if (best === null || cost < best.cost) best = { id, cost };
  }
  return best?.id ?? null;
}
