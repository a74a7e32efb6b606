/** Times of each contestant by round. The order rotates, so that each is first in some rounds and last in others. */
export async function inTurn<T>(
  contestants: readonly T[],
  rounds: number,
  time: (contestant: T, index: number) => Promise<number>,
): Promise<readonly (readonly number[])[]> {
  const times = contestants.map((): number[] => []);
  const entries = [...contestants.entries()];
  for (let round = 0; round < rounds; round++) {
    const first = round % contestants.length;
    for (const [i, contestant] of [...entries.slice(first), ...entries.slice(0, first)])
      times[i]?.push(await time(contestant, i));
  }
  return times;
}
