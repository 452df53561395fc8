//! The rules of the protocol as switches, so that each can be taken out.
//!
//! Owns: [`Mutation`], one for each part of a rule, and [`Setting`], the bounds of a run. The
//! processes ask [`Setting::lacks`] at the place where they keep the rule.

/// A part of a rule that is taken out. The number is the rule's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mutation {
    /// The fence writes the record with the nonce that it has.
    R01Rewrite,
    /// A create that is sent again has the same nonce.
    R01Create,
    /// The list of recent operations is not looked at after a change that may have failed.
    R02Recent,
    /// A change begins anew although its operation may have left the recent list.
    R02Proof,
    /// A create in doubt is sent again later than the grace.
    R02Late,
    /// A change that may still arrive is reported as lost.
    R02Conflict,
    /// The incarnation of a create is no sign that it was applied.
    R02Own,
    /// Blobs are written after the record.
    R03First,
    /// An operation that found its intent condemned writes intent and blobs again.
    R03Again,
    /// A blob is written before its intent.
    R03Blob,
    /// An intent whose answer was lost is written again over what is there.
    R03Over,
    /// An intent is sent again later than the grace.
    R03Late,
    /// A record that names blobs is created without a gone one before it.
    R04Absent,
    /// The intent is not looked at.
    R05Check,
    /// The intent is looked at before the base is read.
    R05Order,
    /// An intent is renewed over what is there.
    R05Renew,
    /// The source is not flagged.
    R06Flag,
    /// A flagged source is not read again.
    R06Read,
    /// The source is confirmed before the intent is written.
    R06Order,
    /// The target is not flagged.
    R06Target,
    /// Of several sources only the first is confirmed.
    R06Others,
    /// An edit forgets what it drops.
    R07Change,
    /// A deletion forgets what it drops.
    R07Delete,
    /// An edit of a tree forgets what was below the old node alone.
    R07Below,
    /// The writer removes its intent before it writes the record.
    R08Early,
    /// The writer removes its intent after a loss.
    R08Loss,
    /// The copier removes its intent.
    R08Share,
    /// gc removes a share intent as soon as nothing more can come of it.
    R08Now,
    /// A cycle removes intents that a newer one resolved.
    R08Newer,
    /// A cycle removes resolved intents although a newer one has begun.
    R08Check,
    /// gc leaves the intent open.
    R09Condemn,
    /// gc does not rewrite the record.
    R09Fence,
    /// gc does not rewrite the record of a share's target.
    R09Share,
    /// The fenced operation's intent goes before its blobs.
    R09First,
    /// Live blobs are not looked at for the operation.
    R09Live,
    /// Retired ones are not.
    R09Retired,
    /// The recent list is not.
    R09Recent,
    /// Nor is what lies below nodes.
    R09Below,
    /// Retired blobs of a flagged record are deleted as if it were not flagged.
    R10Shared,
    /// Entries go before their blobs.
    R10First,
    /// Retired blobs that the object still needs are deleted, too.
    R10Live,
    /// What lies below a retired node stays.
    R10Below,
    /// Nodes go before what they lead to.
    R10Depth,
    /// Blobs of fenced operations are deleted even if records name them.
    R11Fenced,
    /// Retired blobs are deleted even if records name them.
    R11Retired,
    /// Retired blobs that the object itself names are deleted.
    R11Live,
    /// Share intents are no roots.
    R11Intents,
    /// Share intents are listed before the records are read.
    R11Order,
    /// The cycle's number is not looked at.
    R11Cycle,
    /// Retired blobs of gone records are no candidates.
    R11Gone,
    /// Entries that another record names stay.
    R11Entries,
    /// Of flagged records only what they name themselves is a root, nothing below it.
    R11Below,
    /// The same of share intents.
    R11Tops,
    /// The node of an entry that stays is deleted.
    R11Leading,
    /// A gone record is removed whatever it has become.
    R12Plain,
    /// A gone record that has retired blobs is removed.
    R12Retired,
    /// A gone record is removed although an open intent names it.
    R12Open,
    /// A record that cannot be read is passed over.
    R13Record,
    /// The end of a listing that fails is taken for the end of the bucket.
    R13Names,
    /// The same of a listing of intents.
    R13Intents,
    /// Intents are listed before the blobs.
    R14Blobs,
    /// Intents are listed after the records.
    R14Intents,
    /// Share intents are listed before the records.
    R14Shares,
    /// Share intents are not listed.
    R14NoShares,
    /// Retired blobs count as unnamed.
    R14Retired,
    /// Both.
    R14Both,
    /// The cycle's number is not looked at.
    R14Cycle,
    /// What lies below nodes counts as unnamed.
    R14Below,
    /// A reader confirms what it holds before its intent is written.
    R15Order,
    /// The object whose blobs are held is not flagged, only read again.
    R15Flag,
    /// The end of a hold is what the reader's clock says.
    R15Clock,
    /// A hold is written over what is there to last longer.
    R15Over,
    /// gc takes holds for ended that have not.
    R15Early,
    /// gc removes a hold that ended without condemning it first.
    R15Condemn,
    /// gc leaves holds that ended.
    R15Removed,
    /// Holds are no roots.
    R15Intents,
    /// Holds are no roots once they have ended, condemned or not.
    R15Passed,
}

/// The bounds of a run, and what is taken out in it.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub broken: Option<Mutation>,
    /// Operations in a record's recent list.
    pub recent: usize,
    /// How often one request of a change is sent.
    pub sends: u8,
    /// How often a change begins anew.
    pub tries: u8,
    /// Entries of one page of a listing.
    pub page: usize,
}

impl Setting {
    /// Whether this rule is taken out.
    pub fn lacks(&self, mutation: Mutation) -> bool {
        self.broken == Some(mutation)
    }
}
