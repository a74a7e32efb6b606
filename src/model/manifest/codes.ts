/**
 * Closed catalogue of the faults of a manifest or a policy file. `M0…`: the file, `M1…`: its shape, `M2…`: its
 * meaning. A retired code is never used again.
 */
export const CODES = Object.freeze({
  unreadable: 'M0001',
  tooLarge: 'M0002',
  syntax: 'M0003',
  duplicateKey: 'M0004',
  tooDeep: 'M0005',
  aliases: 'M0006',
  key: 'M0007',

  wrongType: 'M1001',
  unknownKey: 'M1002',
  missingKey: 'M1003',
  notAllowed: 'M1004',
  badName: 'M1005',

  unknownReference: 'M2001',
  duplicateName: 'M2002',
  undeclaredColumn: 'M2003',
  unknownType: 'M2004',
  keyNotColumn: 'M2005',
  notSealed: 'M2006',
  notUnique: 'M2007',
  typeMismatch: 'M2008',
  conflict: 'M2009',
  reserved: 'M2010',
  badExpression: 'M2011',
  notGoverned: 'M2012',
});
