"""What a run would come to: predicted from a plan, corrected by what earlier runs measured."""
