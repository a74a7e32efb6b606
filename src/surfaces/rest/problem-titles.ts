/** What each code means at large; the problem's detail says what it means here. A test holds every code to it. */
const TITLES: ReadonlyMap<string, string> = new Map([
  ['E0241', 'Facet not declared'],
  ['E0246', 'Empty sql'],
  ['E0254', 'Model not declared'],
  ['E0510', 'Execution failed'],
  ['E0511', 'Malformed or out of grammar'],
  ['E0512', 'Object not declared'],
  ['E0513', 'Mixed shapes'],
  ['E0514', 'Join not on a sealed key'],
  ['E0515', 'Key not in the clear'],
  ['E0516', 'Cancelled'],
  ['E0517', 'Timed out'],
  ['E0518', 'Too many rows'],
  ['E0519', 'A step found too many rows'],
  ['E0521', 'No language model'],
  ['E0522', 'Content not ready'],
  ['E0523', 'Database down'],
  ['E0524', 'Database refuses the gateway'],
  ['E0525', 'Gone from the database'],
  ['E0526', 'Another type in the database'],
  ['E0527', 'Too costly'],
  ['E0528', 'Not in this database'],
  ['E1001', 'Not resolvable'],
  ['E1002', 'Not servable'],
  ['E2001', 'No policy loaded'],
  ['E2003', 'Ended by a change'],
  ['E2101', 'Denied by policy'],
  ['E2102', 'No access'],
  ['E2103', 'Aggregates only'],
  ['E2104', 'The glass cannot be broken'],
  ['E3001', 'Invalid token'],
  ['E4030', 'Origin not served'],
  ['E4040', 'Not found'],
  ['E4050', 'Method not allowed'],
  ['E4060', 'No value of this format'],
  ['E4090', 'Wrong state'],
  ['E4120', 'Another version is served'],
  ['E4130', 'Body too large'],
  ['E4150', 'Media type not supported'],
  ['E4280', 'No version named'],
  ['E4290', 'Rate limit exceeded'],
  ['E5000', 'Internal error'],
  ['E5030', 'Audit log not available'],
  ['E5031', 'At capacity'],
  ['E5032', 'Shutting down'],
  ['E5033', "Issuer's keys not available"],
  ['E5034', 'The owner of the policy was not reached'],
  ['E5036', 'Control database not available'],
  ['E5037', 'Audit log not readable'],
]);

export function titleOf(code: string): string {
  return TITLES.get(code) ?? 'Error';
}

export function hasTitle(code: string): boolean {
  return TITLES.has(code);
}
