"""What several tasks ask of AWS in the same way: messages in batches, objects in cold storage, folders of a bucket."""
