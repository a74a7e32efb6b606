/** A part of a policy that row security cannot express. The message is its reason. */
export class Inexpressible extends Error {
  override readonly name = 'Inexpressible';
}
